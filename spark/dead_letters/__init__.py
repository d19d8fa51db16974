"""Dead letters: their counts, the causes found in their bodies, and which of them an SQL condition
selects.
"""
