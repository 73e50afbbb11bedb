"""Studies: models, tasks and settings in one file, asked by one command."""
