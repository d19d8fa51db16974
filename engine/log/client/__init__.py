"""What the embedded Kafka is told once, as an administrator; `facade.cli.prepare` calls it."""
