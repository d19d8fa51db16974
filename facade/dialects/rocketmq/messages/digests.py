"""Digests of bodies."""

from __future__ import annotations

import hashlib
import zlib

from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, DigestType


def check_digest(given: pb.Digest, body: bytes) -> None:
    """Raises RocketError for a body that is not what was sent; most clients send no digest."""
    if given.type == DigestType.CRC32:
        made = f"{zlib.crc32(body):08X}"
    elif given.type == DigestType.MD5:
        made = hashlib.md5(body, usedforsecurity=False).hexdigest()
    elif given.type == DigestType.SHA1:
        made = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    else:
        return
    if given.checksum.lower() != made.lower():
        raise RocketError(
            Code.MESSAGE_CORRUPTED,
            f"the {DigestType.Name(given.type)} of the body is {made}, given {given.checksum[:64]!r}",
        )


def digest_of(body: bytes) -> pb.Digest:
    """The digest that every client checks rightly: of a CRC32, Node's client wants decimal digits,
    and Go's no zero before it.
    """
    return pb.Digest(type=DigestType.MD5, checksum=hashlib.md5(body, usedforsecurity=False).hexdigest().upper())
