"""`make bench`: Leaseway beside its peers and the raw substrate, in interleaved rounds on one
machine.
"""
