"""Trackers of experiments: `bench run --log-to`. Each imports its package when it is used."""
