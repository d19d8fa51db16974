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
        "Certificate for HTTPS and its chain, a file in PEM, read again when it changes. Empty = HTTP.",
    )
    tls_key: str = setting("", "Its key, a file in PEM.")
    trust_proxy: str = setting(
        "no",
        "yes: believe X-Forwarded-Proto, -Host, -Port and the last of -For, which a proxy must set or remove.",
        words=("no", "yes"),
    )
    hosts: str = setting(
        "",
        "Further names of the service in open mode (Host), with commas; those of this machine are known.",
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
        "Where `/` leads browsers to the console; empty = there is none. `leaseway up` sets it.",
        form=(r"(https?://[^\s\"'<>]{1,500})?", "a URL of http or https"),
    )
    worker_label: str = setting(
        "",
        "Label `worker` of the metrics; empty = none, or a number where several workers share the port.",
        form=(r"[A-Za-z0-9_.:-]{0,80}", "up to 80 letters, digits, `_`, `.`, `:` or `-`"),
    )
    log_level: str = setting(
        "info",
        "Lines of the log: info, or debug, which adds each stale handle and why.",
        words=("info", "debug"),
    )
    log_format: str = setting(
        "text",
        "Form of a log line: text or json.",
        words=("text", "json"),
    )
    access_log_every: int = setting(
        0,
        "Every how many-th answered request has a line in the log, {within}; each 5xx has one then; 0 = none.",
        within=(0, 1_000_000),
    )
    traces: str = setting(
        "off",
        "Spans of sampled requests: off, or otlp, to a collector that OTEL_* names.",
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
        "For so long SQS clients can't purge a queue again or reuse a deleted one's name, {within} s; AWS: 60.",
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
        "yes: queues made through MNS have priorities, and 16 partitions; no: neither.",
        words=("yes", "no"),
    )
    mns_missing_deleted: str = setting(
        "no", "yes: MNS clients may delete a missing queue; no: QueueNotExist.", words=("no", "yes")
    )


@dataclass(frozen=True)
class RocketmqSettings(Section):
    """Where RocketMQ clients are served, and how their consumer groups behave."""

    rocketmq_port: int = setting(0, "Port of the RocketMQ 5 endpoint (gRPC), {within}; 0 = off.", within=(0, 65535))
    rocketmq_zones: str = setting(
        "",
        "Zones of RocketMQ clients that sign local time as UTC, as +08:00,-03:30, or any; "
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
