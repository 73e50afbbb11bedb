"""Asks a model: limits, retries, a pool of workers, one task's run."""
