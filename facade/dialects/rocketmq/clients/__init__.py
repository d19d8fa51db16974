"""Clients as this worker knows them: their streams, whether they live, and leases to renew for
them.
"""
