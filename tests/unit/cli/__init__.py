"""The command line against answers that are written by hand."""
