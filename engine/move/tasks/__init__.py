"""Redrive tasks: what they move, step by step, and who runs them."""
