"""The embedded model: a small Llama in plain NumPy, which needs neither key nor server."""
