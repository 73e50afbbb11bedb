"""A run, sample by sample: verdicts, draws, and what is wrong with its replies."""
