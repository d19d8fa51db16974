"""The two protocols of SQS: AWS JSON 1.0, and the older query protocol that answers in XML.

Both turn a request into the name of an action and its input struct, and a reply struct or an error
into bytes; so an action is written once. Neighbours: `dialect` asks `protocol_of` first. This
module must not know any action.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from random import getrandbits
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, structs
from starlette.types import Scope

from facade.http.asgi import Response
from facade.sqs import forms, xml
from facade.sqs.call import Action
from facade.sqs.errors import INVALID_ACTION, MISSING_ACTION, QUEUE_DOES_NOT_EXIST, SERIALIZATION, UNKNOWN_OPERATION, Shape, SqsError
from facade.sqs.shapes import GetQueueUrl, OfQueue, SendMessage

_TARGET: Final = b"AmazonSQS."
_FORM: Final = b"application/x-www-form-urlencoded"
_SIGNED: Final = b"AWS4-HMAC-SHA256"
_JSON_TYPE: Final = (b"content-type", b"application/x-amz-json-1.0")
_XML_TYPE: Final = (b"content-type", b"text/xml")
# A path that only SQS has: the root, or an account's number first. Signed forms are SQS's at any
# path.
_OWN_PATH: Final = re.compile(r"/(?:\d+(?:/.*)?)?")
_QUEUE_PATH: Final = re.compile(r"/\d+/[^/]+/?")
_NO_QUEUE: Final = "The specified queue does not exist for this wsdl version."  # this protocol's own words
_encode = msgspec.json.Encoder().encode


class Spoken(Protocol):
    """A request in one of the protocols. `simple` = a browser sends such a request for any page
    without asking us first.
    """

    simple: bool
    unknown: Shape  # what is answered to an action that is not there

    def action(self, body: bytes) -> str:
        """The name of the action asked for; `body` is the whole body. Raises SqsError."""

    def input(self, name: str, action: Action, body: bytes) -> Any:
        """The input of the action. Raises SqsError."""

    def output(self, name: str, content: Struct) -> Response:
        """An answer."""

    def error(self, error: SqsError) -> Response:
        """A refusal."""


def protocol_of(scope: Scope, headers: Mapping[bytes, bytes]) -> Spoken | None:
    """How an HTTP request speaks SQS; None = it does not. Looks at the head alone: `headers` are
    those of `scope`.
    """
    if scope["method"] == "POST":
        target = headers.get(b"x-amz-target")
        if target is not None and target.startswith(_TARGET):
            return _json(target)
        form = headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == _FORM
        signed = headers.get(b"authorization", b"").startswith(_SIGNED)
        mine = form and (signed or _OWN_PATH.fullmatch(scope["path"]) or _SIGNED in scope["query_string"])
    elif scope["method"] == "GET":
        path, query = scope["path"], scope["query_string"]
        mine = _QUEUE_PATH.fullmatch(path) or (b"Action=" in query and (_OWN_PATH.fullmatch(path) or _SIGNED in query))
    else:
        return None
    return Query(scope["path"], scope["query_string"]) if mine else None


# A UUID of version 4 for the head of each reply. Nothing relies on it being hard to guess: what is
# drawn once for the process and a number.
_OF_PROCESS: Final = f"{getrandbits(32):08x}-{getrandbits(16):04x}-4{getrandbits(12):03x}-a{getrandbits(12):03x}-".encode()
_NUMBERS: Final = count()


def _request_id() -> bytes:
    return b"%b%012x" % (_OF_PROCESS, next(_NUMBERS))


def _response(status: int, media_type: tuple[bytes, bytes], request_id: bytes, body: bytes) -> Response:
    return Response(status, [media_type, (b"x-amzn-requestid", request_id), (b"content-length", b"%d" % len(body))], body)


def _fault(error: SqsError) -> str:
    return "Sender" if error.shape.sender_fault else "Receiver"


class Json:
    """AWS JSON 1.0: the action in a header, the input in the body."""

    simple = False
    unknown = UNKNOWN_OPERATION

    def __init__(self, target: str) -> None:
        self._target = target

    def action(self, body: bytes) -> str:
        return self._target

    def input(self, name: str, action: Action, body: bytes) -> Any:
        try:
            return action.decoder.decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise SqsError(SERIALIZATION, _unreadable(str(error))) from None

    def output(self, name: str, content: Struct) -> Response:
        return _response(200, _JSON_TYPE, _request_id(), _encode(content))

    def error(self, error: SqsError) -> Response:
        shape = error.shape
        body = _encode({"__type": shape.type, "message": error.message.encode("utf-8", "replace").decode()})
        response = _response(shape.status, _JSON_TYPE, _request_id(), body)
        response.headers.append((b"x-amzn-query-error", f"{shape.code};{_fault(error)}".encode("ascii")))
        return response


def _unreadable(sentence: str) -> str:
    """Why a body can't be read, of msgspec's sentence: in AWS's words where it has some."""
    if sentence.startswith("Expected `int") and "got `str`" in sentence:
        return "STRING_VALUE can not be converted to an Integer"
    if sentence.startswith("Expected `str") and "got `object`" in sentence:
        return "Start of structure or map found where not expected."
    return f"The body can't be read: {sentence}"


@lru_cache(maxsize=256)
def _json(target: bytes) -> Json:
    return Json(target[len(_TARGET) :].decode("latin-1"))


class Query:
    """The query protocol: action and input as fields of the query string or of a form; the queue
    may be the path.
    """

    simple = True
    unknown = INVALID_ACTION

    def __init__(self, path: str, query: bytes) -> None:
        self._path = path
        self._query = query
        self._fields: Any = {}

    def action(self, body: bytes) -> str:
        self._fields = forms.parse(self._query, body)
        name = self._fields.get("Action")
        if isinstance(name, str) and name:
            return name
        if _QUEUE_PATH.fullmatch(self._path) and not body:
            raise SqsError(UNKNOWN_OPERATION, "The request names no action.")
        raise SqsError(MISSING_ACTION, "The request must contain the parameter Action.")

    def input(self, name: str, action: Action, body: bytes) -> Any:
        found = forms.struct_of(action.body, self._fields, name)
        of_queue = isinstance(found, OfQueue | SendMessage)
        if not _QUEUE_PATH.fullmatch(self._path) or isinstance(found, GetQueueUrl):
            return found
        if not of_queue:
            raise SqsError(INVALID_ACTION, f"The action {name} is not valid for this endpoint.")
        return found if found.queue_url else structs.replace(found, queue_url=self._path)

    def output(self, name: str, content: Struct) -> Response:
        request_id = _request_id()
        return _response(200, _XML_TYPE, request_id, xml.reply(name, content, request_id.decode()))

    def error(self, error: SqsError) -> Response:
        request_id = _request_id()
        message = _NO_QUEUE if error.shape is QUEUE_DOES_NOT_EXIST else error.message
        body = xml.error(_fault(error), error.shape.code, message, request_id.decode())
        return _response(error.shape.status, _XML_TYPE, request_id, body)
