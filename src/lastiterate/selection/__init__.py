"""The best of many trials, and its certificate."""
