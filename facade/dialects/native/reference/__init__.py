"""The API told to its callers: the OpenAPI document, its page and its examples.

The operations and the server use it.
"""
