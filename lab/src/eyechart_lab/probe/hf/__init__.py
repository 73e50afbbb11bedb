"""Causal language models of Hugging Face in a local folder, with torch."""
