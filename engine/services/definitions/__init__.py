"""Definitions: what is to be there, as one document; shown, compared and applied."""
