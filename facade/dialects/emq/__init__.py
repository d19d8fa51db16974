"""The Xiaomi EMQ dialect: Thrift over HTTP, translated to the engine's verbs."""
