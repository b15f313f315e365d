"""Account, calibrate, certify, report."""
