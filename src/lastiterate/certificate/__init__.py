"""Certificates: a claim with everything that is needed to check it, and the check."""
