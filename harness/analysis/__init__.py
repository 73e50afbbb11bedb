"""Judged runs: curves, intervals, tests, tables, leaderboards."""
