"""Further steps that make a model forget some of its records."""
