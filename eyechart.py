"""What a task's generator imports: `from eyechart import Item`."""

from harness.spec import Item

__all__ = ["Item"]
