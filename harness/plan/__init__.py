"""Planning: the samples of a run, their requests and cost, and the proof that a task can be
judged.
"""
