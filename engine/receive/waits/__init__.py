"""Receives that wait: the list of each tag, and how many may wait."""
