"""How `calibrate` finds what meets a target, for each of what it may change."""
