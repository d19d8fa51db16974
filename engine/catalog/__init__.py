"""The control topic in memory, and the right to change it. Every room above reads it; `queues`,
`move` and `recovery` change it.
"""
