"""The Amazon SQS dialect: both protocols of SQS clients, translated to the engine's verbs."""
