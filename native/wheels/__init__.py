"""Prebuilt libraries of the native front: built as wheels, pinned by checksum, installed by pip.

Neighbours: `make wheels` runs `build`, `make setup` runs `install` (docs/decisions/0035).
"""
