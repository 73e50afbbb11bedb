"""What the core does not import: it joins by the entry points that pyproject.toml names."""
