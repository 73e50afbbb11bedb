"""Runs and judges: tasks to samples to answers to tables."""
