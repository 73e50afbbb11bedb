"""The measures of a probe: pure functions, and watchers of a pass."""
