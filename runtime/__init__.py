"""What every long-running part needs and that knows no queue: tasks, services, signals, the clock,
deadlines, counters, failpoints.
"""
