"""The half of `leaseway` that uses the API: its tree of commands, their
options, sessions.
"""
