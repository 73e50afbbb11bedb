"""The report: an HTML page about runs."""
