"""Traces of requests and of moves by OpenTelemetry (docs/decisions/0053-traces.md). It is imported
while they are on.
"""
