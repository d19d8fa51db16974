"""The console as a part of the stack."""
