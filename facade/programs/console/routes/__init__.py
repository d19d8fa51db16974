"""The pages, by noun."""
