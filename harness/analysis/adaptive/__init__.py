"""What is asked next."""
