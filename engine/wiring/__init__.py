"""Builds the parts of the engine once and connects their signals. Transactions, alerts and the
plane build and connect theirs in their own rooms.

What a part needs is in its constructor, in the order in which parts are built here: no part knows
one that comes after it, except through a signal.
"""
