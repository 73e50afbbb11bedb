"""Lengths from verdicts: curves, effective lengths, and their intervals."""
