"""The console: pages over the native API, in a process of their own."""
