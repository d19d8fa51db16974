"""Settings of a facade worker: read once in the composition root, passed down, never read again.

Neighbours: `facade.cli.cli` builds a `Settings`; everything else gets the values it needs. This
module must not know how a setting is used.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.runtime.failpoints import BadFailpoint, parse

PREFIX = "LEASEWAY_"


class BadSetting(ValueError):
    """A setting has a value that can't be used; the text names the variable and what was given."""


def _setting(default: Any, about: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"about": about, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    """One field per setting; the variable is `LEASEWAY_` + the name in capitals."""

    kafka_bootstrap: str = _setting("127.0.0.1:9092", "Kafka's bootstrap servers, host:port[,host:port].")
    redis_url: str = _setting("redis://127.0.0.1:6379/0", "Redis: redis://[:password@]host:port/db, or unix:///path?db=n.")
    host: str = _setting("127.0.0.1", "Address the facade listens on.")
    port: int = _setting(9400, "Port the facade listens on, 1-65535.")
    topic_prefix: str = _setting("lw", "First part of every topic and Redis key.")
    auth: str = _setting("open", "open (the claimed key id is the principal; loopback only) or required.")
    secret: str = _setting("leaseway-insecure-default", "Key of the MACs in handles and ids; same for all workers.", secret=True)
    admin_key_id: str = _setting("admin", "Key id of the first administrator.")
    admin_key_secret: str = _setting("", "Secret of the first administrator; needed when auth is required.", secret=True)
    replication_factor: int = _setting(1, "Replication factor of topics, 1-5.")
    flush_messages: int = _setting(0, "flush.messages of topics: 1 = fsync before the answer, 0 = Kafka's default.")
    default_partitions: int = _setting(4, "Partitions of a queue that names none, 1-64.")
    journal_partitions: int = _setting(4, "Partitions of the journal when it is first made, 1-64.")
    window_messages: int = _setting(8000, "Bodies a unit's window holds per tag, 10-1000000.")
    window_bytes: int = _setting(6_000_000, "Bytes of bodies a unit's window holds per tag, 65536-1000000000.")
    kept_bytes: int = _setting(64_000_000, "Bytes of sent messages a worker keeps in memory while it is alone, 0-10000000000; 0 = none.")
    send_timeout_ms: int = _setting(10_000, "How long a send waits for Kafka before it fails with 503, 1000-60000 ms.")
    trust_proxy: str = _setting("no", "yes: believe X-Forwarded-Proto, -Host and -Port, which a proxy before us must set or remove.")
    start_wait_s: int = _setting(0, "How long `leaseway serve` waits at its start for a Kafka or Redis that does not answer, 0-86400 s.")
    failpoints: str = _setting("", "For tests only: where to fail on purpose, see engine/runtime/failpoints.py.")
    sqs_account: str = _setting("000000000000", "Account of queue URLs and ARNs of SQS, 12 digits; clients may name any.")
    sqs_region: str = _setting("us-east-1", "Region of ARNs of SQS; clients may name and sign for any.")
    sqs_namespaces: str = _setting("", "What tells SQS queues of one name apart: account, region, account,region, or empty: nothing.")
    sqs_limits: str = _setting("aws", "Limits of SQS clients: aws, or wide (delay to 30 days, batches of 100, waits to 60 s).")
    sqs_cool_down_s: int = _setting(0, "How long SQS clients can't purge a queue again or reuse a deleted one's name, 0-60 s; AWS: 60.")

    def __post_init__(self) -> None:
        ranges = {
            "port": (1, 65535),
            "replication_factor": (1, 5),
            "flush_messages": (0, 1_000_000),
            "default_partitions": (1, 64),
            "journal_partitions": (1, 64),
            "window_messages": (10, 1_000_000),
            "window_bytes": (65_536, 1_000_000_000),
            "kept_bytes": (0, 10_000_000_000),
            "send_timeout_ms": (1000, 60_000),
            "start_wait_s": (0, 86_400),
            "sqs_cool_down_s": (0, 60),
        }
        for name, (low, high) in ranges.items():
            given = getattr(self, name)
            if not low <= given <= high:
                raise BadSetting(f"{PREFIX}{name.upper()} must be {low} to {high}, given {given}")
        words = {
            "auth": ("open", "required"),
            "trust_proxy": ("no", "yes"),
            "sqs_namespaces": ("", "account", "region", "account,region"),
            "sqs_limits": ("aws", "wide"),
        }
        for name, allowed in words.items():
            if getattr(self, name) not in allowed:
                about = " or ".join(word or "empty" for word in allowed)
                raise BadSetting(f"{PREFIX}{name.upper()} must be {about}, given {getattr(self, name)!r}")
        if re.fullmatch(r"[0-9]{12}", self.sqs_account) is None:
            raise BadSetting(f"{PREFIX}SQS_ACCOUNT must be 12 digits, given {self.sqs_account!r}")
        if re.fullmatch(r"[a-z0-9-]{1,40}", self.sqs_region) is None:
            raise BadSetting(f"{PREFIX}SQS_REGION must be up to 40 small letters, digits and hyphens, given {self.sqs_region!r}")
        try:
            parse(self.failpoints)
        except BadFailpoint as error:
            raise BadSetting(f"{PREFIX}FAILPOINTS: {error}") from None

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, **given: Any) -> Settings:
        """Settings from `given` (first) and `environment`.

        Raises BadSetting for an unknown `LEASEWAY_` variable, a number that is none, or a value out
        of range.
        """
        fields = {f.name: f for f in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for variable, text in environment.items():
            if not variable.startswith(PREFIX):
                continue
            name = variable[len(PREFIX) :].lower()
            if name not in fields:
                raise BadSetting(f"{variable} is not a setting of Leaseway; `leaseway config` lists them")
            if fields[name].type == "int":
                try:
                    values[name] = int(text)
                except ValueError:
                    raise BadSetting(f"{variable} must be a whole number, given {text!r}") from None
            else:
                values[name] = text
        values.update({name: value for name, value in given.items() if value is not None})
        return cls(**values)
