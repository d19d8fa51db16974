"""The room `engine/receive/`."""
