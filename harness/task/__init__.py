"""Task files: read, checked, tried out, and drawn from."""
