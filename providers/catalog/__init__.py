"""Tables of endpoints and models."""
