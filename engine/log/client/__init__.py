"""What Kafka tells a client, and is told, apart from records: rights that the embedded Kafka is
given once (`facade.programs.cli.prepare` calls it), and why it refuses a connection.
"""
