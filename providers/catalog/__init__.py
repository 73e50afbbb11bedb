"""What is known of endpoints and models."""
