"""The code of others: found by its entry points, bounded in time, and checked."""
