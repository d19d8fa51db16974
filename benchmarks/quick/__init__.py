"""Counts per verb that do not depend on the machine's mood, held against a budget (`make
bench-quick`).
"""
