"""All tests; `conftest` starts the real services they share."""
