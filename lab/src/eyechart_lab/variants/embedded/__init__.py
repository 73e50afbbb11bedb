"""The recipe of the embedded model: its examples, vocabulary and loss."""
