"""How the tiny model was made; not part of what is installed."""
