"""Figures for papers: without titles, of the width of a column, readable in grey."""
