"""The settings of a run: each with its type, its bounds, its help and its names, in one place."""
