"""What a run will ask: samples, requests, their cost, and the proof that a task can be judged."""
