"""Every figure and table of the five papers, made again: `lastiterate reproduce`."""
