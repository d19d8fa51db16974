"""FilterPolicy, an attribute of ours: which messages a tag made through CreateQueue wants, in the
words of SNS.
"""

from __future__ import annotations

from typing import Any, Final

from facade.dialects.sqs.queues.redrive import json_object
from facade.dialects.sqs.wire.errors import INVALID_ATTRIBUTE_VALUE, SqsError
from schemas.filters import Condition, Filter

FILTER_POLICY: Final = "FilterPolicy"
_CONDITIONS: Final = 20


def filter_of(text: str) -> Filter | None:
    """The filter in a FilterPolicy: {"kind": ["retail"], "vip": [{"exists": true}]}; an empty text
    = everything. Raises SqsError.

    Several names must all fit. One name may have several values, of which one must fit; several
    names with several values can't be had.
    """
    if not text:
        return None
    parts = json_object(text)
    if not parts or not all(isinstance(values, list) and values for values in parts.values()):
        raise _bad("it is a JSON object of lists.")
    if len(parts) > 1 and any(len(values) > 1 for values in parts.values()):
        raise _bad("where several names are given, each has one value.")
    conditions = [_condition(name, value) for name, values in parts.items() for value in values]
    if len(conditions) > _CONDITIONS:
        raise _bad(f"it may have {_CONDITIONS} values.")
    return Filter(conditions, "AND" if len(parts) > 1 else "OR")


def _bad(reason: str) -> SqsError:
    return SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {FILTER_POLICY}. Reason: {reason}")


def _condition(name: str, value: Any) -> Condition:
    if isinstance(value, str):
        return Condition(name, "String", value.encode("utf-8", "replace"))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Condition(name, "Number", str(value).encode())
    if value == {"exists": True}:
        return Condition(name)
    raise _bad('a value is a string, a number or {"exists": true}.')
