"""The read side of a schema registry, as data: which schema has which id.

A subject is what a schema is about (`message`); its versions are numbered from 1; a schema's name
is subject.version, as its file in `avro/`. An id stands in every record in Kafka; from the
first release on it is for ever.
"""

from __future__ import annotations

import json
from importlib.resources import files

# name -> id. From the first release on, a row is added for a new version, and none changes.
_IDS = {
    "message.1": 1,
    "journal.1": 2,
    "queue.1": 30,
    "key.1": 24,
    "task.1": 23,
    "generation.1": 40,
    "snapshot.1": 42,
    "position.1": 8,
    "user.1": 29,
    "transaction.1": 11,
    "producer_group.1": 12,
    "meter.1": 13,
    "watch.1": 14,
    "delay.1": 17,
    "audit.1": 25,
    "claim.1": 41,
    "history.1": 43,
    "outcomes.1": 44,
    "requests.1": 45,
}


def _read(name: str) -> str:
    text = (files("schemas") / "avro" / f"{name}.avsc").read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))


_TEXTS = {number: _read(name) for name, number in _IDS.items()}
_NAMES = {number: name for name, number in _IDS.items()}
_VERSIONS: dict[str, dict[int, int]] = {}
for _name, _id in _IDS.items():
    _subject, _version = _name.split(".")
    _VERSIONS.setdefault(_subject, {})[int(_version)] = _id


def schema_id(name: str) -> int:
    """The id of schema `subject.version`, or of the newest version of `subject`. Raises KeyError if
    there is none.
    """
    if name in _IDS:
        return _IDS[name]
    found = _VERSIONS[name]
    return found[max(found)]


def schema_text(id: int) -> str:
    """The schema as JSON text. Raises KeyError if no schema has that id."""
    return _TEXTS[id]


def schema_name(id: int) -> str:
    """The name `subject.version` of a schema. Raises KeyError if no schema has that id."""
    return _NAMES[id]


def schema_ids() -> list[int]:
    """All ids, ascending."""
    return sorted(_TEXTS)


def subjects() -> list[str]:
    """All subjects."""
    return list(_VERSIONS)


def versions(subject: str) -> list[int]:
    """The versions of a subject, ascending. Raises KeyError if there is no such subject."""
    return sorted(_VERSIONS[subject])


def version_id(subject: str, version: int) -> int:
    """The id of one version of a subject. Raises KeyError if there is none."""
    return _VERSIONS[subject][version]
