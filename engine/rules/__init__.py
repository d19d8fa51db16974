"""Rules of a queue without I/O and without asyncio: limits, FIFO, placement, waiting for company.
Any room may ask.
"""
