"""The settings of a run and of judging: each with its type, its bounds, its help and its names, in
one place.
"""
