"""The Python SDK of EMQ as a child process: a call is a line of JSON on standard input, its outcome
a line on standard output.

The SDK brings a package `thrift` of its own, so it can't be loaded beside the service's. A call
goes through the SDK's own client with its checks and retries (`checked`), or through its generated
client, which sends what the checks would refuse. Structs are objects by the names of the IDL.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from emq.client.clientfactory import ClientFactory
from emq.client.thttpclient import THttpClient
from emq.common.ttypes import GalaxyEmqServiceException
from rpc.auth.ttypes import Credential, UserType
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TType

CLIENTS = {"queue": "queue_client", "message": "message_client", "statistics": "statistics_client"}


def made(kind: int, detail: Any, value: Any) -> Any:
    """A value of a type of the IDL from JSON; `detail` is what the type is made of."""
    if kind == TType.STRUCT:
        struct, spec = detail
        known = {row[2]: (row[1], row[3]) for row in spec if row}
        return struct(**{name: made(*known[name], one) for name, one in value.items()})
    if kind == TType.LIST:
        item, item_detail = detail[0], detail[1]
        return [made(item, item_detail, one) for one in value]
    if kind == TType.MAP:
        key, key_detail, item, item_detail = detail
        return {made(key, key_detail, one): made(item, item_detail, other) for one, other in value.items()}
    return value


def plain(value: Any) -> Any:
    """The other way; fields that are not set are left out."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "thrift_spec"):
        fields = ((row[2], getattr(value, row[2])) for row in value.thrift_spec if row)
        return {name: plain(one) for name, one in fields if one is not None}
    return value


def outcome(asked: dict[str, Any]) -> dict[str, Any]:
    """What became of a call."""
    name, method, endpoint = asked["service"], asked["method"], asked["endpoint"]
    module = import_module(f"emq.{name}.{name.capitalize()}Service")
    own = module if hasattr(module, f"{method}_args") else import_module("emq.common.EMQBaseService")
    spec = getattr(own, f"{method}_args").thrift_spec
    arguments = [made(spec[1][1], spec[1][3], asked["request"])] if len(spec) > 1 and spec[1] else []
    credential = Credential(UserType.APP_SECRET, asked["key"], asked["secret"])
    try:
        if asked["checked"]:
            client = getattr(ClientFactory(credential), CLIENTS[name])(endpoint)
        else:
            transport = THttpClient(credential, f"{endpoint}/v1/api/{name}?id=12345678&type={method}", 60)
            transport.setCustomHeaders({"User-Agent": "test"})
            client = module.Client(TBinaryProtocol(transport))
        return {"answer": plain(getattr(client, method)(*arguments))}
    except GalaxyEmqServiceException as error:
        return {
            "error": {"code": error.errorCode, "msg": error.errMsg, "details": error.details, "id": error.requestId}
        }
    except TApplicationException as error:
        return {"application": {"type": error.type, "message": error.message}}
    except Exception as error:  # what the SDK makes of a status that is not 200
        return {"failed": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    sys.stdout.write(json.dumps(outcome(json.loads(line))) + "\n")
    sys.stdout.flush()
