"""The charts of a page and of papers."""
