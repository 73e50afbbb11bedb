"""The verbs of `bench`: each module has the options of the verb of its name."""
