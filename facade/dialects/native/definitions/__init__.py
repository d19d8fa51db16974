"""Definitions in the native dialect."""
