"""The group of tasks `brackets`: the YAML files in this folder."""
