"""Calls and their answers in the three protocols of Thrift: one function for each thing that is
read or written.

Binary messages have the strict head, with the version word; one with the older head, that begins
with the length of the name, is refused as every body that is no message: no client of EMQ sends it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from thrift.Thrift import TMessageType

from facade.dialect import Refusal
from facade.dialects.emq.wire.codec import Codec, Unreadable
from facade.dialects.emq.wire.enums import ApplicationError
from facade.dialects.emq.wire.kinds import shape_of
from facade.dialects.emq.wire.packed import BINARY, COMPACT
from facade.dialects.emq.wire.services import Method, Result, Service
from facade.dialects.emq.wire.structs.shared import ApplicationException, GalaxyEmqServiceException
from facade.dialects.emq.wire.tjson import JSON

# Longer than the name of any method, and short enough to be repeated in an answer.
NAME_CHARACTERS: Final = 128
_CODECS: Final[dict[bytes, Codec]] = {
    b"application/x-thrift-compact": COMPACT,
    b"application/x-thrift-binary": BINARY,
    b"application/x-thrift-json": JSON,
    b"application/x-thrift": JSON,
}
_APPLICATION_EXCEPTION: Final = shape_of(ApplicationException)


class BadThrift(Refusal, ValueError):
    """A body that is no call of a method of the service. `name` is None if the head can't be read
    or the answer may not repeat it; else the answer is an application exception with `code`.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str | None = None,
        seqid: int = 0,
        code: ApplicationError = ApplicationError.PROTOCOL_ERROR,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.seqid = seqid
        self.code = code


class ThriftCall(Struct, frozen=True, gc=False):
    """A call: `argument` is the struct that its method takes, a string, or None."""

    method: Method
    seqid: int
    argument: Any


def base_type(content_type: bytes) -> bytes:
    """The Content-Type without its parameters, in lower case: that of the answer too."""
    return content_type.partition(b";")[0].strip().lower()


def is_thrift(content_type: bytes) -> bool:
    """Whether a body of this Content-Type can be read."""
    return base_type(content_type) in _CODECS


def decode_call(content_type: bytes, body: bytes, service: Service) -> ThriftCall:
    """The call that `body` is. Raises BadThrift, and nothing else whatever the body is.

    A field that its struct does not have, or has with another type, is left out, as Thrift wants
    it. Strings are UTF-8, numbers in their ranges, and nothing follows the message.
    """
    codec = _codec(content_type)
    try:
        opened = codec.open(body)
    except Unreadable as error:
        raise BadThrift(str(error)) from None
    name, seqid = opened.name, opened.seqid
    if len(name) > NAME_CHARACTERS or not -(1 << 31) <= seqid < 1 << 31:
        raise BadThrift("the head of the message has a name or a sequence number out of range")
    if opened.kind != TMessageType.CALL:
        raise BadThrift(
            "the message is not a call with an answer",
            name=name,
            seqid=seqid,
            code=ApplicationError.INVALID_MESSAGE_TYPE,
        )
    method = service.methods.get(name)
    if method is None:
        raise BadThrift(
            f"{service.name} has no method {name!r}", name=name, seqid=seqid, code=ApplicationError.UNKNOWN_METHOD
        )
    try:
        return ThriftCall(method, seqid, codec.read(opened, method.call).value)
    except Unreadable as error:
        raise BadThrift(str(error), name=name, seqid=seqid) from None


def encode_reply(content_type: bytes, call: ThriftCall, result: Any) -> bytes:
    """What the method answers: its struct or list, or None if it answers nothing. Raises ValueError
    for a result that is not of its method.
    """
    method = call.method
    if (result is None) is not method.is_void:
        raise ValueError(f"{method.name} answers {'nothing' if method.is_void else 'something'}")
    return _codec(content_type).write(
        method.name, TMessageType.REPLY, call.seqid, Result(success=result), method.answer
    )


def encode_exception(content_type: bytes, call: ThriftCall, error: GalaxyEmqServiceException) -> bytes:
    """The exception that the method throws."""
    return _codec(content_type).write(
        call.method.name, TMessageType.REPLY, call.seqid, Result(e=error), call.method.answer
    )


def encode_application_exception(content_type: bytes, error: BadThrift) -> bytes:
    """Thrift's own answer to a call that does not come to a method. Raises ValueError if `error`
    has no name: nobody would know what is answered.
    """
    if error.name is None:
        raise ValueError("an answer needs the name of its call")
    content = ApplicationException(message=error.message, type=error.code)
    return _codec(content_type).write(error.name, TMessageType.EXCEPTION, error.seqid, content, _APPLICATION_EXCEPTION)


def _codec(content_type: bytes) -> Codec:
    codec = _CODECS.get(content_type) or _CODECS.get(base_type(content_type))
    if codec is None:
        raise BadThrift("the Content-Type is none of Thrift's")
    return codec
