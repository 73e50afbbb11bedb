"""What a command asks: its models, tasks and settings, looked up and checked."""
