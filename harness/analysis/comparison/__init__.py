"""Comparisons of runs and of conditions."""
