"""Counts what the log says: typed frames over Kafka's topics, reports, streaming jobs. Imports
`schemas`, nothing else of the project.
"""
