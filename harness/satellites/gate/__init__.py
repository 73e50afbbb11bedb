"""A comparison with a saved baseline that ends in an exit code, for pipelines.

`baseline` writes and reads the file, `gate` decides, `outputs` writes what pipelines show.
"""
