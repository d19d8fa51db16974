"""What goes over the wire: JSON and query forms, shapes, replies, errors and digests.

The other rooms of `facade.dialects.sqs` use it; it knows no verb.
"""
