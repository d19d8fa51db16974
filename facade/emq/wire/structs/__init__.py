"""The structs of EMQ's IDL, by the service that declares them. Without meaning: `facade.emq.wire`
encodes and decodes them, `facade.emq` says what they ask for.
"""
