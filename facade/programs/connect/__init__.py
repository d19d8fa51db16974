"""How programs reach a service: profiles, requests, and what may go wrong."""
