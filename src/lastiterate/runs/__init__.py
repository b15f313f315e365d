"""What was run, in the words of the code that ran it; no analysis."""
