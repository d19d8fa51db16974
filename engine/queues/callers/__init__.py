"""Who asks, and what they may: keys, rights, quotas, users. `engine.py` passes each verb through
it.
"""
