"""What noise on a bounded or contracting state forgets: small evaluators that have to be believed, searches that do not."""
