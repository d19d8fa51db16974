"""What every page of the console passes: who asks, the calls of the service, the rendering."""
