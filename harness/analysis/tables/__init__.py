"""The files of a run, and texts of their cells."""
