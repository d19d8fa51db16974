"""The verbs of the engine: six services side by side, all that a dialect may call. `engine.Engine`
has one of each.
"""
