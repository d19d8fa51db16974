"""The native front: Rust in `src`, and `wheels`, which makes prebuilt libraries of it.

Nothing here is imported by the service.
"""
