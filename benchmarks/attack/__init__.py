"""Attempts to break the library: at its border, with whatever may be typed or passed."""
