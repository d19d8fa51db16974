"""The room `engine/handles/`."""
