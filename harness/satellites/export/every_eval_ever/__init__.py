"""Records for the Every Eval Ever datastore."""
