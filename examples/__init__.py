"""A package, so that `python -m examples.NAME` finds these files and not those of another project that is installed."""
