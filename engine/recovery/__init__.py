"""State that was lost comes back from Kafka, and is compared with it. `window` asks for it; so does
the command line.
"""
