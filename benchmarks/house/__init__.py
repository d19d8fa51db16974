"""How the code is laid out, in numbers, and how far a verb goes through it:
`python -m benchmarks.house`. `layout` reads the sources, `trip` follows verbs, `bars` judges.
"""
