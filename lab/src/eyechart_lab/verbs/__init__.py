"""The verbs of the laboratory: each module has the options of the verb of its name."""
