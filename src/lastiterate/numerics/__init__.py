"""Mathematics that has never heard of privacy, with every error on a stated side."""
