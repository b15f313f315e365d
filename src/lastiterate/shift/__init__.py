"""Schedules of payments, which the kernel checks; bounds on distances, and momentum, which have to be believed."""
