"""A function or an object of the user's as a model."""
