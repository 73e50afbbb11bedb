"""What the command line and Python share: runs and their samples, without printing."""
