"""How queues begin and end: creations, copies, deletions, purges, and new lives of those whose
topic was lost.
"""
