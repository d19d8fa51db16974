"""Settings of the engine, and how settings are declared and read: each field has its meaning and
its bounds.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from runtime.failpoints import BadFailpoint, parse
from schemas.client_properties import FILES, for_librdkafka
from schemas.client_properties import parse as parse_properties
from schemas.topics import DEFAULT_PREFIX

PREFIX = "LEASEWAY_"
# Variables of the command line (facade/programs/connect/profiles.py): no settings of a service.
OF_CLIENTS = frozenset(("LEASEWAY_ENDPOINT", "LEASEWAY_KEY_ID", "LEASEWAY_KEY_SECRET", "LEASEWAY_PROFILE"))


class BadSetting(ValueError):
    """A setting has a value that can't be used; the text names the variable and what was given."""


def setting(
    default: Any,
    about: str,
    *,
    within: tuple[int, int] | None = None,
    words: tuple[str, ...] = (),
    form: tuple[str, str] | None = None,
    secret: bool = False,
    hidden: bool = False,
) -> Any:
    """A field. Its value is a number `within`, or one of `words`, or of a `form`: a pattern and
    what it says.

    `about` may name the bounds as {within} and what the form says as {form}. A `secret` is shown
    nowhere; what is `hidden` may have one in it, and is in no text of the settings as a whole.
    """
    text = about.format(within="-".join(str(bound) for bound in within or ()), form=form[1] if form else "")
    rules = {"about": text, "within": within, "words": words, "form": form, "secret": secret}
    return dataclasses.field(default=default, repr=not (secret or hidden), metadata=rules)


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def file_variable_of(field: dataclasses.Field[Any]) -> str:
    """Returns the variable that names a file with the value of a setting; "" for a setting that has
    no secret in it, which needs none.
    """
    return f"{variable_of(field.name)}_FILE" if field.metadata["secret"] or not field.repr else ""


def from_files(fields: Iterable[dataclasses.Field[Any]], environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment with the content of the files that it names in place of their names,
    without the end of the last line. Raises BadSetting.
    """
    read = dict(environment)
    for field in fields:
        variable, named = variable_of(field.name), file_variable_of(field)
        path = read.pop(named, "") if named else ""
        if not path:
            continue
        if variable in environment:
            raise BadSetting(f"{variable} and {named} are both set: give one of them")
        try:
            read[variable] = Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BadSetting(f"{named}: {path} can't be read: {why}") from None
        if not read[variable]:
            raise BadSetting(f"{named}: {path} is empty")
    return read


@dataclass(frozen=True)
class Section:
    """Some settings: one field for each, made by `setting`."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check(field, getattr(self, field.name))

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, **given: Any) -> Self:
        """Settings from `given` (first) and `environment`.

        Raises BadSetting for an unknown `LEASEWAY_` variable, a number that is none, or a value out
        of range, and for a file of a secret that can't be read.
        """
        fields = {f.name: f for f in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for variable, text in from_files(fields.values(), environment).items():
            if not variable.startswith(PREFIX) or variable in OF_CLIENTS:
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


def _check(field: dataclasses.Field[Any], given: Any) -> None:
    """Raises BadSetting."""
    rule = field.metadata
    if rule["within"] is not None:
        low, high = rule["within"]
        if not low <= given <= high:
            raise BadSetting(f"{variable_of(field.name)} must be {low} to {high}, given {given}")
    if rule["words"] and given not in rule["words"]:
        about = " or ".join(word or "empty" for word in rule["words"])
        raise BadSetting(f"{variable_of(field.name)} must be {about}, given {given!r}")
    if rule["form"] is not None and re.fullmatch(rule["form"][0], given) is None:
        raise BadSetting(f"{variable_of(field.name)} must be {rule['form'][1]}, given {given!r}")


@dataclass(frozen=True)
class EngineSettings(Section):
    """Kafka, Redis, what is kept in each, and who may do what."""

    kafka_bootstrap: str = setting("127.0.0.1:9092", "Kafka's bootstrap servers, host:port[,host:port].")
    kafka_config: str = setting(
        "",
        "Properties file of Kafka's Java client, for Spark's jobs too; empty = plaintext.",
    )
    redis_url: str = setting(
        "redis://127.0.0.1:6379/0",
        "Redis: redis:// or (TLS) rediss://[user:password@]host:port/db, or unix:///path?db=n; options as in redis-py.",
        hidden=True,
    )
    topic_prefix: str = setting(DEFAULT_PREFIX, "First part of every topic and Redis key.")
    auth: str = setting(
        "open", "open (the claimed key id is the principal; loopback only) or required.", words=("open", "required")
    )
    secret: str = setting(
        "leaseway-insecure-default",
        "Secret that signs handles and ids, and seals what Kafka keeps of keys and settings; the same for all workers.",
        secret=True,
    )
    secret_old: str = setting(
        "", "One more secret whose seals and signatures are accepted, while the secret is changed.", secret=True
    )
    admin_key_id: str = setting("admin", "Key id of the first administrator.")
    admin_key_secret: str = setting("", "Secret of the first administrator; needed when auth is required.", secret=True)
    admin_key_secret_old: str = setting(
        "", "One more secret of the first administrator, while it is changed.", secret=True
    )
    replication_factor: int = setting(1, "Replication factor of topics, {within}.", within=(1, 5))
    flush_messages: int = setting(
        0, "flush.messages of topics: 1 = fsync before the answer, 0 = Kafka's default.", within=(0, 1_000_000)
    )
    max_queues: int = setting(20_000, "Queues of the service, about, {within}.", within=(1, 1_000_000))
    max_partitions: int = setting(
        100_000, "Partitions of all queues together, about, {within}.", within=(1, 10_000_000)
    )
    max_waits: int = setting(
        10_000,
        "Receives of one principal that wait at a worker, {within}; a worker has 20000 in all.",
        within=(1, 20_000),
    )
    quotas: str = setting(
        "default",
        "Bounds of users and accounts without their own, when auth is required: default (docs/reference/native.md) "
        "or none.",
        words=("default", "none"),
    )
    default_partitions: int = setting(4, "Partitions of a queue that names none, {within}.", within=(1, 64))
    journal_partitions: int = setting(4, "Partitions of the journal when it is first made, {within}.", within=(1, 64))
    window_messages: int = setting(
        8000, "Message bodies that Redis keeps for each partition and tag, {within}.", within=(10, 1_000_000)
    )
    window_bytes: int = setting(
        6_000_000,
        "Bytes of bodies that Redis keeps for each partition and tag, {within}.",
        within=(65_536, 1_000_000_000),
    )
    kept_bytes: int = setting(
        64_000_000,
        "Bytes of sent messages that a lone worker keeps in memory, and its plane as many, {within}.",
        within=(0, 10_000_000_000),
    )
    plane: str = setting(
        "auto",
        "Whether the plane serves hot requests: auto (where it can) or off.",
        words=("auto", "off"),
    )
    send_timeout_ms: int = setting(
        10_000,
        "How long a send may take before it fails with 503, {within} ms.",
        within=(1000, 60_000),
    )
    start_wait_s: int = setting(
        0,
        "How long `serve` waits for Kafka and Redis, and `up` for each part, {within} s; 0 = not at all, "
        "and ten minutes.",
        within=(0, 86_400),
    )
    transaction_immunity_ms: int = setting(
        6_000,
        "How long nobody is asked about a transaction whose prepare names no time, {within} ms.",
        within=(0, 43_200_000),
    )
    transaction_interval_ms: int = setting(
        60_000, "How long after a check of a transaction the next one comes, {within} ms.", within=(1_000, 3_600_000)
    )
    transaction_checks: int = setting(
        15, "How often producers are asked about a transaction, {within}.", within=(1, 1_000)
    )
    transaction_exhausted: str = setting(
        "rollback",
        "What becomes of a transaction after its last check: rollback, commit, or keep (until it is too old).",
        words=("rollback", "commit", "keep"),
    )
    transaction_age_ms: int = setting(
        259_200_000,
        "A transaction that is open for so long is rolled back, {within} ms.",
        within=(60_000, 1_209_600_000),
    )
    transactions_per_queue: int = setting(
        20_000, "Open transactions of a queue, about, {within}.", within=(1, 1_000_000)
    )
    transactions_open: int = setting(50_000, "Open transactions of all queues, about, {within}.", within=(1, 1_000_000))
    webhook_addresses: str = setting(
        "public",
        "Where webhooks may go: public addresses, or all.",
        words=("public", "all"),
    )
    statistics_folder: str = setting(
        "",
        "Folder of `leaseway report --out`, for statistics of days; empty = none.",
    )
    smtp_host: str = setting("", "SMTP server for mail to owners of queues; empty = no mail.")
    smtp_port: int = setting(25, "Port of the SMTP server, {within}.", within=(1, 65535))
    smtp_tls: str = setting(
        "no",
        "TLS to the SMTP server: no, starttls, or tls (from the first byte).",
        words=("no", "starttls", "tls"),
    )
    smtp_user: str = setting("", "User at the SMTP server, if any.")
    smtp_password: str = setting("", "Password of that user.", secret=True)
    smtp_from: str = setting(
        "leaseway@localhost", "Sender of mail.", form=(r"[^\s@]{1,64}@[^\s@]{1,190}", "an address")
    )
    meter_minute_s: int = setting(
        60, "For tests only: length of a minute of meters and alerts, {within} s; the same for all.", within=(1, 60)
    )
    audit: str = setting(
        "management",
        "What the audit has besides refusals: management (changes of queues, rights and keys) or all requests.",
        words=("management", "all"),
    )  # fmt: skip
    audit_days: int = setting(365, "How long the audit is kept, {within} days.", within=(1, 3650))
    failpoints: str = setting("", "For tests only: where to fail on purpose, see runtime/failpoints.py.")

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            parse(self.failpoints)
        except BadFailpoint as error:
            raise BadSetting(f"{variable_of('failpoints')}: {error}") from None
        self.kafka_client()
        # Here: redis-py takes 0.1 s to import, which `leaseway --help` need not wait for.
        from state.redis.address import BadAddress, redis_address

        try:
            redis_address(self.redis_url)
        except BadAddress as error:
            raise BadSetting(f"{variable_of('redis_url')}: {error}") from None

    def kafka_client(self) -> dict[str, str]:
        """What `kafka_config` says, for Kafka's client, read now. Raises BadSetting."""
        if not self.kafka_config:
            return {}
        try:
            client = for_librdkafka(parse_properties(Path(self.kafka_config).read_text(encoding="utf-8").splitlines()))
            for name in FILES:  # of which the client would not say which it can't read
                if name in client:
                    Path(client[name]).open("rb").close()
        except (OSError, ValueError) as error:
            why = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
            raise BadSetting(f"{variable_of('kafka_config')}: {why}") from None
        return client


# What the rest of the engine still imports.
Settings = EngineSettings
