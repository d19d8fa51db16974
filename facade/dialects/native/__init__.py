"""The native dialect: JSON over HTTP under /v1, and its documents."""
