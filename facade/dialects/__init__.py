"""The wire protocols of clients, a folder each. A dialect knows no other."""
