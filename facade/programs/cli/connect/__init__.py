"""How the command line reaches a service: profiles, requests, and what may go wrong."""
