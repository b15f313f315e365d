"""What other libraries say of the same mechanisms, and in which time."""
