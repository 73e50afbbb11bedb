"""Causal language models of Hugging Face on this machine: a folder, or a GGUF file."""
