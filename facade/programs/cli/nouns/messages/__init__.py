"""The verbs of `leaseway message`: sending, receiving and settling, looking."""
