"""Requests to somebody else's server on behalf of a user: to where they may go, signed, once.
`engine.transactions` and `engine.alerts` post by it.
"""
