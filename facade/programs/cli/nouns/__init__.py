"""A module for each noun of the command line, with its verbs."""
