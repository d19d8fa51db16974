"""Programs that other services' clients run, each in a process with packages of its own."""
