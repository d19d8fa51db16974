"""Data that Kafka or Redis can't start with: what is lost, what is not, and the one command that
goes on.

It must not delete anything.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from schemas.topics import control_topic, journal_topic

# Written when Kafka's storage is formatted, so that a folder without its data is known from a new
# one.
FORMATTED = "kafka.formatted"
# Has the prefix of the topics of which Kafka was told what others may do.
PREPARED = "kafka.prepared"
# Redis' lines of a warning or worse that are about its file, and not that it has made do with it,
# nor that it could not write, which a full disk does to a file that can be read.
_REDIS_SAYS = re.compile(
    r" # (?!.*(?:loaded anyway|short read while|writing to the AOF|AOF write error))"
    r".*(?:append[- ]only|append log|\bAOF\b|\bRDB\b|\bDB\b)",
    re.IGNORECASE,
)
_WORDS = 160


def kafka_gone(folder: Path) -> str | None:
    """That Kafka's data in `folder` were there once and are not, in whole or in what names all
    topics; None = they are there.
    """
    data = folder / "kafka"
    if not (folder / FORMATTED).exists():
        return None
    if not (data / "meta.properties").exists():
        missing = "meta.properties"
    elif not (data / "__cluster_metadata-0").exists() and any(data.glob("*-[0-9]*")):
        missing = "__cluster_metadata-0"
    elif (topic := _control_topic_gone(folder)) is not None:
        missing = f"{topic}-0"
    else:
        return None
    return (
        f"Kafka's data are gone ({data} has no {missing}): lost are all queues, messages and keys, unless you have a "
        "copy; not lost are the secrets of this folder and whatever else is still in it. With a copy, put it back as "
        f"{data} and run `leaseway up --data {folder} --rebuild-redis`; without, `leaseway up --data {folder} "
        "--start-empty` sets what is left aside and starts without a queue"
    )


def _control_topic_gone(folder: Path) -> str | None:
    """The topic that says which queues there are, if its data are not there, but others of this
    service are: Kafka would make it anew, without a word and without a queue.
    """
    data, prefix = folder / "kafka", prepared_prefix(folder)
    topic = control_topic(prefix)
    is_used = bool(prefix) and any(data.glob(f"{journal_topic(prefix)}-[0-9]*"))
    return topic if is_used and not (data / f"{topic}-0").exists() else None


def prepared_prefix(folder: Path) -> str:
    """The prefix of topics for which Kafka was told what others may do; "" = for none."""
    file = folder / PREPARED
    return file.read_text().strip() if file.is_file() else ""


def redis_refuses(folder: Path, words: str) -> str | None:
    """That redis-server ended because it can't read its data, if that is what `words`, its own of
    this life, say.
    """
    said = [line for line in words.splitlines() if _REDIS_SAYS.search(line)]
    if not said:
        return None
    line = said[-1].partition(" # ")[2][:_WORDS]
    return (
        f"Redis can't read its data in {folder / 'redis'} (it says {line!r}): lost are, unless Redis was stopped in "
        "order, acks and leases of the last second before it ended (such a message comes again); not lost are all "
        f"queues, messages, and other acks and leases, for Kafka has them. `leaseway up --data {folder} "
        "--rebuild-redis` sets the data aside and rebuilds the state from Kafka"
    )


def set_aside(folder: Path, names: tuple[str, ...], say: Callable[[str], None]) -> None:
    """Moves the data of these services to names of their own, so that they start without. Raises
    OSError.
    """
    end = time.strftime("aside-%Y%m%dT%H%M%S")
    for name in names:
        if (folder / name).exists():
            (folder / name).rename(folder / f"{name}.{end}")
            say(f"{folder / name} is now {name}.{end}: delete it when you don't need it any more")
    if "kafka" in names:
        for name in (FORMATTED, PREPARED):
            (folder / name).unlink(missing_ok=True)
