"""Simulations behind what Eyechart says of its statistics, on curves whose truth is known."""
