"""Where tables are, and what says which state of them counts."""
