"""A message as MNS shows it: of a receive, and of a peek (reference/mns.md 3.8 and 3.10)."""

from __future__ import annotations

from base64 import b64encode
from hashlib import md5

from engine.shapes import Delivery, Peeked
from facade.dialects.mns.messages.properties import outgoing
from facade.dialects.mns.wire.replies import Items, legal
from schemas.records import Message


def body_md5(text: str) -> str:
    """The digest of a body as it is on the wire."""
    return md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def _text(message: Message) -> str:
    """The body as text: bytes that a native sender gave are in Base64, as SDKs send theirs."""
    if message.body_is_text:
        return legal(message.body.decode("utf-8", "replace"))
    return b64encode(message.body).decode()


def received(delivery: Delivery, handle: str) -> Items:
    """The elements of a message that a receive gives."""
    message = delivery.message
    text = _text(message)
    return (
        ("MessageId", delivery.id),
        ("MessageBodyMD5", body_md5(text)),
        ("MessageBody", text),
        ("ReceiptHandle", handle),
        ("EnqueueTime", delivery.sent_at_ms),
        ("FirstDequeueTime", delivery.first_received_at_ms),
        ("NextVisibleTime", delivery.next_visible_at_ms),
        ("DequeueCount", delivery.receive_count),
        ("Priority", message.priority),
        ("MessageGroupId", message.group),
        *outgoing(message),
    )


def peeked(found: Peeked) -> Items:
    """The elements of a message that a peek shows; one that nobody has received shows when it was
    sent.
    """
    message = found.message
    text = _text(message)
    return (
        ("MessageId", found.id),
        ("MessageBodyMD5", body_md5(text)),
        ("MessageBody", text),
        ("EnqueueTime", found.sent_at_ms),
        ("FirstDequeueTime", found.first_received_at_ms or found.sent_at_ms),
        ("DequeueCount", found.receive_count),
        ("Priority", message.priority),
        ("MessageGroupId", message.group),
        *outgoing(message),
    )
