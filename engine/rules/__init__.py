"""Rules of a queue without I/O and without asyncio: limits, FIFO, placement, lingering. Any room
may ask.
"""
