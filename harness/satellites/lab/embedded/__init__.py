"""The training of the tiny model; not part of the installed package."""
