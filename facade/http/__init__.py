"""HTTP, as every dialect needs it: connections, requests, replies, problems, health, metrics."""
