"""Sends the requests of a command, and asks more until something is decided."""
