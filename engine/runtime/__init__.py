"""What every long-running part needs: services, signals, the clock, counters, failpoints. It knows
no queue.
"""
