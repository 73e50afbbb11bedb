"""Runs and tasks in the forms of other tools."""
