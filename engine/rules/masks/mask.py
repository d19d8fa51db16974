"""The rules of a mask, and a message without what they hide (docs/decisions/0054).

A rule is `*` (the whole body), the path of a value in a JSON body (`card`, `customer.email`,
`items.*.iban`), or `attribute:NAME`, of which `attribute:*` means all. In a path, `*` is every
member of an object and every element of a list; a name goes into every element of a list, too. A
value that is neither object nor list is hidden where the path stops there, unless it is null, and a
body that is no JSON object or list as a whole. A place in a list that is none, and a name with
dots, are found as well. So a sender that changes its format shows nothing by that, unless it gives
a value another name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from engine.errors import InvalidValue
from schemas.records import Attribute, Message

HIDDEN: Final = "***"  # in place of a value, a body or an attribute
ALL: Final = "*"
ATTRIBUTE: Final = "attribute:"
MAX_RULE: Final = 200  # characters
_SEGMENT: Final = re.compile(r"[^\[\]]+\Z")
# Decimals, so that no number is shown as another one.
_decoder: Final = msgspec.json.Decoder(float_hook=Decimal)
_encoder: Final = msgspec.json.Encoder(decimal_format="number")


class Mask:
    """Hides what some rules name. Immutable."""

    __slots__ = ("_attributes", "_paths", "_whole", "rules")

    def __init__(self, rules: Sequence[str]) -> None:
        self.rules = frozenset(rules)
        self._attributes = frozenset(rule.removeprefix(ATTRIBUTE) for rule in rules if rule.startswith(ATTRIBUTE))
        self._whole = ALL in rules
        self._paths = [rule.split(".") for rule in rules if rule != ALL and not rule.startswith(ATTRIBUTE)]

    def is_part_of(self, other: Mask | None) -> bool:
        """Whether the other one has all of these rules."""
        return other is not None and self.rules <= other.rules

    def hides_any(self, attributes: Iterable[str]) -> bool:
        """Whether a rule is about one of these attributes."""
        return bool(self._attributes) and (ALL in self._attributes or not self._attributes.isdisjoint(attributes))

    @property
    def hides_attributes(self) -> bool:
        """Whether a rule is about attributes."""
        return bool(self._attributes)

    def hide(self, message: Message) -> Message:
        """The message as who only looks is shown it: of a JSON body all that is left is written
        anew, so that nothing is between the values.
        """
        changed: dict[str, Any] = {}
        if self._whole or self._paths:
            changed = {"body": self._body(message.body), "body_is_text": True}
            if message.dedup_id is not None and _is_digest(message.dedup_id, message.body):
                changed["dedup_id"] = None
        if self._attributes:
            changed["attributes"] = {name: self._attribute(name, one) for name, one in message.attributes.items()}
        return msgspec.structs.replace(message, **changed)

    def _attribute(self, name: str, attribute: Attribute) -> Attribute:
        if self.hides_any((name,)):
            return Attribute("string", HIDDEN.encode())
        return attribute

    def _body(self, body: bytes) -> bytes:
        if not self._whole:
            try:
                value = _decoder.decode(body)
                for path in self._paths:
                    value = _hidden(value, path, 0)
                return _encoder.encode(value)
            except (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError):
                pass  # no JSON, or deeper than anybody reads
        return HIDDEN.encode()


def _is_digest(dedup_id: str, body: bytes) -> bool:
    """Whether an id tells the body to who guesses it: a queue with content_dedup makes such ones,
    and so do some clients.
    """
    name = {32: "md5", 40: "sha1", 64: "sha256"}.get(len(dedup_id))
    return name is not None and dedup_id.lower() == hashlib.new(name, body, usedforsecurity=False).hexdigest()


def _hidden(value: Any, path: Sequence[str], at: int) -> Any:
    """A value without what `path` leads to from `at` on."""
    if at == len(path):
        return HIDDEN
    name = path[at]
    if isinstance(value, dict):
        for key in list(value) if name == ALL else [name] if name in value else []:
            value[key] = _hidden(value[key], path, at + 1)
        if name.isdecimal() and name not in value:  # one thing where a list of them was meant
            return _hidden(value, path, at + 1)
        if (rest := ".".join(path[at:])) in value:
            value[rest] = HIDDEN
        return value
    if isinstance(value, list):
        # A number is meant as a place in the list: it counts as each of them.
        after = at + 1 if name == ALL or name.isdecimal() else at
        return [_hidden(one, path, after) for one in value]
    return None if value is None else HIDDEN


def check_mask(rules: Sequence[str]) -> None:
    """Raises InvalidValue for a rule that is not as above: one that is written as in another
    language would hide nothing.
    """
    for rule in rules:
        path = rule.removeprefix(ATTRIBUTE)
        names = [path] if path != rule else path.split(".")
        good = (
            1 <= len(rule) <= MAX_RULE
            and rule.isprintable()
            and rule[0] not in "$/"
            and all(map(_SEGMENT.match, names))
        )
        if not good:
            raise InvalidValue(
                "mask: a rule is * (the whole body), a path such as customer.email or items.*.iban, or "
                f"attribute:NAME, of up to {MAX_RULE} characters and without [, ], or $ or / before it, given "
                f"{rule[:MAX_RULE]!r}",
                field="mask",
                limit="*, a path, or attribute:NAME",
                given=rule[:MAX_RULE],
            )
