"""Filter expressions of subscriptions: `*`, or tags of messages with `||` between them, as filters
of the engine.

The tag of a message is its attribute TAGS, a text in any dialect.
"""

from __future__ import annotations

from typing import Final

from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, FilterType
from schemas.filters import Condition, Filter

TAG_ATTRIBUTE: Final = "TAGS"
ALL: Final = "*"
_TYPE: Final = "String"
_MOST: Final = 20  # conditions of a filter


def text_of(expression: pb.FilterExpression) -> str:
    """An expression in its only form: tags in order, each once. Raises RocketError."""
    if expression.type not in (FilterType.TAG, FilterType.FILTER_TYPE_UNSPECIFIED):
        raise RocketError(
            Code.ILLEGAL_FILTER_EXPRESSION, "only expressions of tags are served, as 'a || b' or '*'; not SQL92"
        )
    tags = {part.strip() for part in expression.expression.split("||")} - {""}
    if not tags or ALL in tags:
        return ALL
    if len(tags) > _MOST:
        raise RocketError(Code.ILLEGAL_FILTER_EXPRESSION, f"an expression has {_MOST} tags at most, given {len(tags)}")
    for tag in tags:
        if "|" in tag or not tag.isprintable():
            raise RocketError(
                Code.ILLEGAL_FILTER_EXPRESSION, f"a tag has no '|' and no control characters, given {tag[:200]!r}"
            )
    return "||".join(sorted(tags))


def filter_of(text: str) -> Filter | None:
    """The filter of an expression in its only form; None = all messages."""
    if text == ALL:
        return None
    return Filter([Condition(TAG_ATTRIBUTE, _TYPE, tag.encode()) for tag in text.split("||")], "OR")
