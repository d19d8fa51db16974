"""The way to Redis: its address, one connection, scripts, wake-ups, locks. The modules of `state`
call it; others build a `Connection` and a `Wake`, and hold locks.
"""
