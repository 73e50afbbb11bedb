"""Runs and their samples, for both the command line and Python; nothing here prints."""
