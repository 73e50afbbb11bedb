"""The results of the models of a study: numbers, tables, sentences and a page."""
