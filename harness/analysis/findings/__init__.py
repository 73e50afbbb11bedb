"""What runs and comparisons show, as values; every sentence at every door is one of them."""
