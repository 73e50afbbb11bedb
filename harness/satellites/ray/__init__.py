"""Asks a model on a Ray cluster: many engines or workers, on one machine or on many."""
