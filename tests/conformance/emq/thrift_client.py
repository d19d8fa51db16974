"""A Thrift client of EMQ in each of the three protocols, by the protocols that the Thrift library
has in Python alone: the service uses its C codec, and one of ours for JSON.

Requests and answers are objects by the names of the IDL, as in `galaxy`, which is the clients' own.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64encode
from email.utils import formatdate
from functools import cache
from hashlib import md5, sha1
from typing import Any, Final

import httpx
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from facade.dialects.emq.wire.kinds import Kind, Shape
from facade.dialects.emq.wire.services import SERVICES, Method
from tests.conformance.emq.galaxy import Failed, Refused

PROTOCOLS: Final = {"binary": TBinaryProtocol, "compact": TCompactProtocol, "json": TJSONProtocol}


class Dynamic:
    """A struct that the library reads and writes by its `thrift_spec`."""

    thrift_spec: tuple[Any, ...] = ()

    def read(self, protocol: Any) -> None:
        protocol.readStruct(self, self.thrift_spec)

    def write(self, protocol: Any) -> None:
        protocol.writeStruct(self, self.thrift_spec)


@cache
def class_of(shape: Shape) -> type[Dynamic]:
    """A class for a struct, with None for what is not set."""
    rows: dict[int, tuple[Any, ...]] = {
        field.number: (field.number, field.kind.code, field.name, detail_of(field.kind), None) for field in shape.fields
    }
    spec = tuple(rows.get(number) for number in range(max(rows, default=-1) + 1))
    return type(shape.name, (Dynamic,), {"thrift_spec": spec, **{row[2]: None for row in rows.values()}})


def detail_of(kind: Kind) -> Any:
    """What the library wants to know of a type beside its number."""
    if kind.code == TType.STRUCT:
        assert kind.shape is not None
        made = class_of(kind.shape)
        return (made, made.thrift_spec)
    if kind.code == TType.LIST:
        assert kind.item is not None
        return (kind.item.code, detail_of(kind.item), False)
    if kind.code == TType.MAP:
        assert kind.key is not None and kind.item is not None
        return (kind.key.code, detail_of(kind.key), kind.item.code, detail_of(kind.item), False)
    return "BINARY" if kind.is_bytes else "UTF8" if kind.code == TType.STRING else None


def made(kind: Kind, value: Any) -> Any:
    """The library's value of a plain one."""
    if kind.code == TType.STRUCT:
        assert kind.shape is not None
        found = class_of(kind.shape)()
        kinds = {field.name: field.kind for field in kind.shape.fields}
        for name, one in value.items():
            setattr(found, name, made(kinds[name], one))
        return found
    if kind.code == TType.LIST:
        assert kind.item is not None
        return [made(kind.item, one) for one in value]
    if kind.code == TType.MAP:
        assert kind.item is not None
        return {key: made(kind.item, one) for key, one in value.items()}
    return value


def plain(value: Any) -> Any:
    """The other way; fields that are not set are left out."""
    if isinstance(value, Dynamic):
        fields = ((row[2], getattr(value, row[2])) for row in value.thrift_spec if row)
        return {name: plain(one) for name, one in fields if one is not None}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


class ThriftClient:
    """Calls in one protocol. Raises Refused, Failed."""

    def __init__(self, endpoint: str, protocol: str = "binary", key: str = "anonymous", secret: str = "") -> None:
        self._endpoint = endpoint
        self._key = key
        self._secret = secret
        self._make = PROTOCOLS[protocol]
        self._http = httpx.Client(timeout=60)
        self._headers = {
            "content-type": f"application/x-thrift-{protocol}",
            "authorization": f"Galaxy-V2 {key}:{'A' * 27}=",
        }
        self._methods: dict[str, tuple[str, Method]] = {
            name: (path, method) for path, service in SERVICES.items() for name, method in service.methods.items()
        }

    def call(self, name: str, /, **request: Any) -> Any:
        """One call whose argument is a struct."""
        return self.ask(name, request)

    def ask(self, name: str, request: Any = None) -> Any:
        """One call with its argument, if it has one."""
        path, method = self._methods[name]
        body = TMemoryBuffer()
        protocol = self._make(body)
        protocol.writeMessageBegin(name, TMessageType.CALL, 7)
        argument = class_of(method.call)()
        for field in method.call.fields:
            setattr(argument, field.name, made(field.kind, request))
        argument.write(protocol)
        protocol.writeMessageEnd()
        content = body.getvalue()
        headers = self._signed(path, content) if self._secret else self._headers
        reply = self._http.post(
            f"{self._endpoint}{path}", params={"id": "abcdef01", "type": name}, headers=headers, content=content
        )
        if reply.status_code != 200:
            raise Failed(f"{reply.status_code} {reply.text}")
        assert reply.headers["content-type"] == self._headers["content-type"]
        return self._answer(name, method, reply.content)

    def _signed(self, path: str, content: bytes) -> dict[str, str]:
        """The headers as the SDK of Go has them (reference/emq.md 4.4)."""
        more = {
            "x-xiaomi-content-md5": md5(content).hexdigest(),
            "x-xiaomi-date": formatdate(usegmt=True),
            "x-xiaomi-timestamp": str(int(time.time())),
        }
        lines = [
            "POST",
            "",
            self._headers["content-type"],
            "",
            *(f"{name}:{value}" for name, value in sorted(more.items())),
            path,
        ]
        signature = b64encode(hmac.new(self._secret.encode(), "\n".join(lines).encode(), sha1).digest()).decode()
        return self._headers | more | {"authorization": f"Galaxy-V2 {self._key}:{signature}"}

    def _answer(self, name: str, method: Method, content: bytes) -> Any:
        protocol = self._make(TMemoryBuffer(content))
        called, kind, seqid = protocol.readMessageBegin()
        assert (called, seqid) == (name, 7)
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            raise Failed(f"{error.type} {error.message}")
        answer = class_of(method.answer)()
        answer.read(protocol)
        told = plain(answer)
        if "e" in told:
            error = told["e"]
            raise Refused(
                {
                    "code": error["errorCode"],
                    "msg": error["errMsg"],
                    "details": error["details"],
                    "id": error.get("requestId"),
                }
            )
        return told.get("success")

    def close(self) -> None:
        self._http.close()
