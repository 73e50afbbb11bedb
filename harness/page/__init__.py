"""The page of a report: runs side by side, charts, tables, samples, what produced them."""
