"""The structs of EMQ's IDL, by the service that declares them. Without meaning:
`facade.dialects.emq.wire` encodes and decodes them, `facade.dialects.emq` says what they ask for.
"""
