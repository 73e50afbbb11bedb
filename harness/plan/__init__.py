"""Plans: the samples of a run, their requests and cost, and the proof of a task."""
