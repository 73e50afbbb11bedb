"""The files of a run: its manifest, its records, and the index of its answers."""
