"""Verbs of messages: send, receive, delete, change visibility, move tasks.

The dialect uses it.
"""
