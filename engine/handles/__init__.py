"""What the holder of a receipt handle may do, and receives that are repeated. `engine.py` calls
it.
"""
