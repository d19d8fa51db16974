"""Topics and consumer groups: names, routes, types, subscriptions. They are the engine's queues and
tags.
"""
