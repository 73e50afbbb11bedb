"""Tasks for Inspect."""
