"""vLLM: servers that run already and servers that bench starts."""
