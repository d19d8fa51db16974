"""The data folder: who owns it, what is in it, what an earlier run left.

The supervisor and its programs use it.
"""
