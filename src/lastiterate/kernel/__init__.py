"""All that has to be believed when a schedule is replayed: numpy and scipy.special, and nothing else of the package."""
