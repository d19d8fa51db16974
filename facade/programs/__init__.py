"""What people start: the command line, the embedded stack, the demo."""
