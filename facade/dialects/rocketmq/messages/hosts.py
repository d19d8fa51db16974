"""The host of a message's sender, which RocketMQ's consumers are shown and nobody else: it is kept
as an attribute, encrypted under the secret of the service.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CHARACTERS: Final = 255
_NONCE_BYTES: Final = 12


def sealed(host: str, secret: str) -> str:
    """A host as it is kept; of a longer name the beginning."""
    nonce = os.urandom(_NONCE_BYTES)
    return b64encode(nonce + _cipher(secret).encrypt(nonce, host[:CHARACTERS].encode(), None)).decode()


def opened(text: str, secret: str) -> str:
    """The host; "" for what this service has not kept, or under another secret."""
    try:
        data = b64decode(text, validate=True)
        return _cipher(secret).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], None).decode()
    except (ValueError, InvalidTag):
        return ""


@lru_cache(maxsize=4)
def _cipher(secret: str) -> AESGCM:
    return AESGCM(hashlib.sha256(b"leaseway.rocketmq.host\0" + secret.encode("utf-8", "surrogatepass")).digest())
