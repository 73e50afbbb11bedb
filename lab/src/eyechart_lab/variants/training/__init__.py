"""Trains models: their examples, the steps, the devices and the processes."""
