"""What a variant of a model may change: positions, attention, stretching, and the loss."""
