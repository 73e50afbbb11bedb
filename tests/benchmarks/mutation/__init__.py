"""A mutation run, see `__main__`."""
