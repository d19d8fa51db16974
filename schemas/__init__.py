"""Names and shapes: vocabulary, Avro schemas, codecs. No I/O; imports no other package of the
project.
"""
