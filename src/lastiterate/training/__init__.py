"""Runs a Run: samplers, clipping, linear models in numpy. It knows no theorem."""
