"""What the trained models of a study got: numbers, tables, sentences and a page."""
