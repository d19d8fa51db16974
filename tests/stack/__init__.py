"""Tests of the embedded stack, the command line, and what the project's files say about them."""
