"""What is proved about the last iterate: one module per paper, one catalogue."""
