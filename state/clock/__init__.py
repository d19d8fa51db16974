"""Time in the state: the clock of the service, and who has been silent for how long."""
