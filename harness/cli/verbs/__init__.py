"""The verbs of `bench`: each module has the options of the verb of its name, and its first line is
what the program's help says.
"""
