"""What a run wrote down: its manifest, its records, and the index of its answers."""
