"""Privacy notions, the arrows between them, composition and subsampling."""
