"""What all providers that speak HTTP share."""
