"""Figures that others published, beside ours."""
