"""The native front: a library serves HTTP, and gives requests and takes answers in batches.

`library` loads it, `listener` joins it to the event loop, `request` is a request that goes to the
app.
"""
