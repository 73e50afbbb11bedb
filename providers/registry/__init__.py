"""What the name of a model means, what its provider takes, and how it is opened."""
