"""How the query protocol names what the JSON protocol calls lists and maps: flattened, one numbered
element for each.
"""

from __future__ import annotations

from typing import Final

# Member -> its element. `{action}` stands for the action's name.
_ELEMENTS: Final[dict[str, str]] = {
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
    "AttributeNames": "AttributeName",
    "Attributes": "Attribute",
    "BinaryListValues": "BinaryListValue",
    "Entries": "{action}RequestEntry",
    "Failed": "BatchResultErrorEntry",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageAttributes": "MessageAttribute",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "MessageSystemAttributes": "MessageSystemAttribute",
    "Messages": "Message",
    "QueueUrls": "QueueUrl",
    "Results": "{action}ResultEntry",
    "StringListValues": "StringListValue",
    "Successful": "{action}ResultEntry",
    "TagKeys": "TagKey",
    "Tags": "Tag",
    "queueUrls": "QueueUrl",
    "tags": "Tag",
}


def spellings(member: str, action: str) -> tuple[str, ...]:
    """The names that AWS takes for a list or map in a request: its element's, its own, and its own
    in the letters that another action has it in (`tags` of CreateQueue, `Tags` of TagQueue).
    """
    return element(member, action), member, member[0].swapcase() + member[1:]


def element(member: str, action: str) -> str:
    """The element of a list or map. Raises KeyError for a member without a row (a fault of
    ours).
    """
    return _ELEMENTS[member].format(action=action)


def pair(element: str) -> tuple[str, str]:
    """How a map names its key and its value, by any of its spellings."""
    return ("Key", "Value") if element in ("Tag", "Tags", "tags") else ("Name", "Value")
