"""The embedded model: a small Llama in plain NumPy, which needs neither key nor server."""

from __future__ import annotations

from eyechart.providers.tiny.provider import TinyProvider, open_provider

__all__ = ["TinyProvider", "open_provider"]
