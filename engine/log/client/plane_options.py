"""What the plane is told of Kafka: how it gets in, its bounds, and what each error code says of an
append. The names are librdkafka's where it has one.

The plane reads PEM only and no token, and refuses an option that it does not know: the text says
which, and the plane is off then.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from engine.errors import LogUnavailable
from engine.log.appender import BATCH_BYTES, QUEUE_KIB
from engine.log.kafka_errors import (
    AUTHENTICATION,
    MISSING,
    QUEUE_FULL,
    REFUSED,
    REPEATED,
    RESOLVE,
    STOPPED,
    TIMED_OUT,
    TLS,
    TOO_LARGE,
    TRANSPORT,
    UNKNOWN_PARTITION,
    UNSUPPORTED,
)
from engine.log.shapes import MAX_RECORD_BYTES

# As many as librdkafka has of an idempotent producer.
_IN_FLIGHT = 5
# A broker closes a connection that is idle for ten minutes; we do it first.
_IDLE_MS = 540_000
_METADATA_AGE_MS = 300_000
_SETUP_MS = 10_000
# As long as the appender asks for a topic that the broker may only be about to hear of, twice.
_PROPAGATION_MS = 600


def plane_options(bootstrap: str, client_id: str, send_timeout_ms: int, client: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of the plane's producer. `client` is what `EngineSettings.kafka_client`
    returns. Raises LogUnavailable for a key that can't be read.
    """
    codes = {"refused": REFUSED, "again": REPEATED, "missing": MISSING}
    local = {
        "timed_out": TIMED_OUT,
        "transport": TRANSPORT,
        "tls": TLS,
        "authentication": AUTHENTICATION,
        "unsupported": UNSUPPORTED,
        "resolve": RESOLVE,
        "queue_full": QUEUE_FULL,
        "too_large": TOO_LARGE,
        "stopped": STOPPED,
        "unknown_partition": UNKNOWN_PARTITION,
    }
    return {
        "connections.max.idle.ms": str(_IDLE_MS),
        "metadata.max.age.ms": str(_METADATA_AGE_MS),
        "socket.connection.setup.timeout.ms": str(_SETUP_MS),
        **_in_pem(client),
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "request.timeout.ms": str(send_timeout_ms),
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "400",
        "topic.metadata.propagation.max.ms": str(_PROPAGATION_MS),
        "max.in.flight": str(_IN_FLIGHT),
        "batch.size": str(BATCH_BYTES),
        "message.max.bytes": str(MAX_RECORD_BYTES),
        "queue.buffering.max.kbytes": str(QUEUE_KIB),
        **{f"codes.{use}": ",".join(map(str, sorted(found))) for use, found in codes.items()},
        **{f"codes.{use}": str(code) for use, code in local.items()},
    }


def _in_pem(client: Mapping[str, str]) -> dict[str, str]:
    """The options with key stores and locked keys opened, and the system's authorities where none
    are named.
    """
    found = dict(client)
    try:
        if "ssl.keystore.location" in found:
            store = Path(found.pop("ssl.keystore.location")).read_bytes()
            found |= _opened_store(store, found.pop("ssl.keystore.password", ""))
        if "ssl.key.password" in found:
            pem = found.pop("ssl.key.pem", None) or Path(found.pop("ssl.key.location")).read_text()
            found["ssl.key.pem"] = _opened_key(pem, found.pop("ssl.key.password"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LogUnavailable(f"the key for Kafka can't be opened: {error}") from None
    if found.get("security.protocol", "").endswith("SSL") and not {"ssl.ca.location", "ssl.ca.pem"} & found.keys():
        paths = ssl.get_default_verify_paths()
        found["ssl.ca.location"] = paths.cafile or paths.openssl_cafile
    return found


def _opened_key(pem: str, password: str) -> str:
    key = load_pem_private_key(pem.encode(), password.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _opened_store(store: bytes, password: str) -> dict[str, str]:
    key, certificate, others = pkcs12.load_key_and_certificates(store, password.encode())
    if key is None or certificate is None:
        raise ValueError("the key store has no key with a certificate")
    chain = b"".join(one.public_bytes(Encoding.PEM) for one in (certificate, *others))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {"ssl.certificate.pem": chain.decode(), "ssl.key.pem": pem.decode()}
