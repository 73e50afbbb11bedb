"""Asks a model through a vendor's Batch API, or through files."""
