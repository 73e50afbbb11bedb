"""Models that lm-evaluation-harness loads."""
