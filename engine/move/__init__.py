"""A message goes to another queue: dead letters and redrive. `receive` hands dying messages over;
`engine.py` starts tasks.
"""
