"""`lastiterate serve`: a planner in the browser, for this machine alone."""
