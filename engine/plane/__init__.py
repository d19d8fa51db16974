"""The plane: hot verbs of plain queues, served by a thread of the native library with the scripts
of `state/lua` (docs/decisions/0048). Here it is said which queues those are, and what it needs.
"""
