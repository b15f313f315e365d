"""How close the bounds come to exact instances."""
