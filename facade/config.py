"""All settings of a worker: those of the engine, of the server, and of each dialect. Read once in
the composition root, passed down, never read again.

A dialect's class has its name in front of each field, and each part of the service asks for the
class it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.settings import EngineSettings, Section, setting


@dataclass(frozen=True)
class ServerSettings(Section):
    """Where the facade listens, and what is before it and behind it."""

    host: str = setting("127.0.0.1", "Address the facade listens on.")
    port: int = setting(9400, "Port the facade listens on, {within}.", within=(1, 65535))
    tls_cert: str = setting(
        "",
        "File with the certificate for HTTPS and its chain, in PEM; it is read again when it changes. "
        "Empty = plain HTTP.",
    )
    tls_key: str = setting("", "File with the key of that certificate, in PEM.")
    trust_proxy: str = setting(
        "no",
        "yes: believe X-Forwarded-Proto, -Host, -Port and the last of -For, which a proxy before us must set or "
        "remove.",
        words=("no", "yes"),
    )
    hosts: str = setting(
        "",
        "Further names under which clients reach the service in open mode (Host), with commas; "
        "those of this machine are known.",
        form=(r"[A-Za-z0-9.,_ -]*", "names with commas in between"),
    )
    max_connections: int = setting(
        20_000,
        "Connections of a worker at once, {within}; fewer where it may not open so many descriptors. "
        "RocketMQ's port has a quarter.",
        within=(16, 1_000_000),
    )
    console_url: str = setting(
        "",
        "Where browsers find the console: the page at `/` leads there. Empty = there is none. `leaseway up` sets it.",
        form=(r"(https?://[^\s\"'<>]{1,500})?", "a URL of http or https"),
    )
    worker_label: str = setting(
        "",
        "Label `worker` of the metrics; empty = none, or the number of each where several workers share the port.",
        form=(r"[A-Za-z0-9_.:-]{0,80}", "up to 80 letters, digits, `_`, `.`, `:` or `-`"),
    )
    log_level: str = setting(
        "info",
        "Which lines the log has: info, or debug, which adds each handle that was stale and why.",
        words=("info", "debug"),
    )
    log_format: str = setting(
        "text",
        "How a line of the log is written: text, or json, an object with its words as fields.",
        words=("text", "json"),
    )
    access_log_every: int = setting(
        0,
        "Every how many-th answered request the log has a line for, {within}: 1 = each, 0 = none. "
        "Failures of 5xx have one each then.",
        within=(0, 1_000_000),
    )
    traces: str = setting(
        "off",
        "Spans of requests that carry a sampled trace context: off, or otlp, to a collector as the variables OTEL_* "
        "say.",
        words=("off", "otlp"),
    )
    native: str = setting(
        "auto",
        "Whether the native library serves HTTP: auto (where it can, else uvicorn), "
        "require (no worker starts without it) or off.",
        words=("auto", "require", "off"),
    )


@dataclass(frozen=True)
class SqsSettings(Section):
    """What SQS clients are told, and what they may do."""

    sqs_account: str = setting(
        "000000000000",
        "Account of queue URLs and ARNs of SQS, {form}; clients may name any.",
        form=(r"[0-9]{12}", "12 digits"),
    )
    sqs_region: str = setting(
        "us-east-1",
        "Region of ARNs of SQS; clients may name and sign for any.",
        form=(r"[a-z0-9-]{1,40}", "up to 40 small letters, digits and hyphens"),
    )
    sqs_namespaces: str = setting(
        "",
        "What tells SQS queues of one name apart: account, region, account,region, or empty: nothing.",
        words=("", "account", "region", "account,region"),
    )
    sqs_limits: str = setting(
        "aws",
        "Limits of SQS clients: aws, or wide (delay to 30 days, batches of 100, waits to 60 s).",
        words=("aws", "wide"),
    )
    sqs_cool_down_s: int = setting(
        0,
        "How long SQS clients can't purge a queue again or reuse a deleted one's name, {within} s; AWS: 60.",
        within=(0, 60),
    )


@dataclass(frozen=True)
class EmqSettings(Section):
    """What EMQ clients mean."""

    emq_permissions: str = setting(
        "new",
        "How EMQ clients number permissions: new, or old (before 2017-09: 9 is FULL_CONTROL).",
        words=("new", "old"),
    )


@dataclass(frozen=True)
class MnsSettings(Section):
    """What MNS clients get."""

    mns_priority: str = setting(
        "yes",
        "yes: queues made through MNS have priorities, and 16 partitions; no: all of their messages are alike.",
        words=("yes", "no"),
    )
    mns_missing_deleted: str = setting(
        "no", "yes: an MNS client may delete a queue that is not there; no: that is QueueNotExist.", words=("no", "yes")
    )


@dataclass(frozen=True)
class RocketmqSettings(Section):
    """Where RocketMQ clients are served, and how their consumer groups behave."""

    rocketmq_port: int = setting(0, "Port of the RocketMQ 5 endpoint (gRPC), {within}; 0 = off.", within=(0, 65535))
    rocketmq_zones: str = setting(
        "",
        "Zones of RocketMQ clients that sign local time as if it were UTC, as +08:00,-03:30, or any; "
        "UTC and this machine's are known.",
        form=(
            r"(any|([+-](0\d|1[0-4]):[0-5]\d)(, *[+-](0\d|1[0-4]):[0-5]\d)*)?",
            "offsets from UTC with commas in between, or any",
        ),
    )
    rocketmq_retries: str = setting(
        "sofa",
        "When push consumers of RocketMQ retry: sofa (10 s, 30 s, ... 2 h) or rocketmq (1 s, 5 s, 10 s, ...).",
        words=("sofa", "rocketmq"),
    )
    rocketmq_max_attempts: int = setting(
        17,
        "Deliveries before a message goes to the dead-letter queue of its consumer group, {within}.",
        within=(1, 1000),
    )
    rocketmq_max_delay_s: int = setting(
        259_200, "Farthest delivery time of a RocketMQ message from now, {within} s.", within=(1, 2_592_000)
    )
    rocketmq_new_groups: str = setting(
        "oldest", "Where a new consumer group of RocketMQ begins: oldest or newest message.", words=("oldest", "newest")
    )


@dataclass(frozen=True)
class Settings(RocketmqSettings, MnsSettings, EmqSettings, SqsSettings, ServerSettings, EngineSettings):
    """Every setting; the variable is `LEASEWAY_` + the name in capitals."""
