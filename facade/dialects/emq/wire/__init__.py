"""What goes over the wire: structs, services, the three Thrift protocols and error codes.

The other rooms of `facade.dialects.emq` use it; it knows no verb.
"""
