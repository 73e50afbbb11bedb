"""The page about runs."""
