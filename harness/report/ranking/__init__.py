"""The pages and tables of a leaderboard."""
