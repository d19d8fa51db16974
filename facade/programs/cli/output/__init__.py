"""What the command line prints: tables, JSON, YAML, names."""
