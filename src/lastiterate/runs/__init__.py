"""Runs described in the words of the code that executed them, without any analysis."""
