"""The part of a queue that Redis holds: every call to it, and where a body comes from. The verbs'
rooms ask it.
"""
