"""The inside of models, and variants of a small model that are trained, asked and probed alike."""
