"""Account and calibrate: from a run to its ε, and back."""
