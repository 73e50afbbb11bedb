"""Asks a model: limits, retries, a pool of workers, the run of one task."""
