"""The Amazon SQS dialect: the JSON 1.0 protocol of SQS clients, translated to the engine's verbs."""
