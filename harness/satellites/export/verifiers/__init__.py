"""Tasks for verifiers, the library of environments for reinforcement learning."""
