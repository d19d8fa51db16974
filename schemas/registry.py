"""The read side of a schema registry, as data: which schema has which id.

A subject is what a schema is about (`message`); its versions are numbered from 1; a schema's name
is subject.version, as its file in `avro/`. An id is for ever: it stands in every record in Kafka,
so rows are only added to `_IDS`. Neighbours: `wire` asks for schemas by id, the facade serves this
over HTTP. This module must not know codecs or HTTP.
"""

from __future__ import annotations

import json
from importlib.resources import files

# name -> id. Add a row for a new version; never change or remove one.
_IDS = {
    "message.1": 1,
    "journal.1": 2,
    "queue.1": 3,
    "key.1": 4,
    "task.1": 5,
    "generation.1": 6,
    "snapshot.1": 7,
    "position.1": 8,
    "queue.2": 9,
    "user.1": 10,
    "transaction.1": 11,
    "producer_group.1": 12,
    "meter.1": 13,
    "watch.1": 14,
    "user.2": 15,
    "snapshot.2": 16,
    "delay.1": 17,
    "queue.3": 20,
    "queue.4": 21,
    "queue.5": 22,
    "task.2": 23,
    "key.2": 24,
    "audit.1": 25,
    "queue.6": 26,
    "user.3": 27,
    "queue.7": 28,
    "user.4": 29,
    "queue.8": 30,
    "generation.2": 40,
    "claim.1": 41,
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
    """All subjects, in the order of their ids."""
    return list(_VERSIONS)


def versions(subject: str) -> list[int]:
    """The versions of a subject, ascending. Raises KeyError if there is no such subject."""
    return sorted(_VERSIONS[subject])


def version_id(subject: str, version: int) -> int:
    """The id of one version of a subject. Raises KeyError if there is none."""
    return _VERSIONS[subject][version]
