"""Options, their defaults, and where verbs come from."""
