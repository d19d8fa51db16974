"""Verbs that tell of themselves to whoever traces requests."""
