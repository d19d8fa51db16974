"""Queues and tags: create, change, delete, look at them, and find those whose topic is gone.
`engine.py` calls it.
"""
