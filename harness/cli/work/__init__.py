"""What the verbs do: a module for each verb, and what several of them share."""
