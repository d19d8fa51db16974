"""The native front: a library reads the sockets, and gives requests and takes answers in batches.

`library` loads it, `listener` joins it to the event loop, `transport` lets `facade.http.connection`
serve what is not plain.
"""
