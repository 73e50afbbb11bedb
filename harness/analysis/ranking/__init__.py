"""Many models: leaderboards and ranks."""
