"""What `import eyechart` gives, as Python and notebooks show it."""
