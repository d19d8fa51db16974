"""What causes each error of SQS that can be caused here, with its code, its status, and its text to
the letter.

The texts are AWS's own, as recorded from the real service by others or reported by its users, where
that is known of them. Longer than 250 lines: one table.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tests.conformance.sqs.conftest import PROTOCOL, text

OLD = "AWS.SimpleQueueService."
NO_QUEUE = "The specified queue does not exist" + (" for this wsdl version." if PROTOCOL == "query" else ".")
OTHER_TYPE = "The request include parameter that is not valid for this queue type."
NO_DEDUPLICATION = (
    "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
)
ID = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 "
    "letters long."
)
CHARACTERS = (
    "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 "
    "to #xFFFD | #x10000 to #x10FFFF"
)
FIFO_NAME = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with "
    ".fifo suffix and be 1 to "
    "80 in length."
)
NAME = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
GONE = "Message does not exist or is not available for visibility timeout change."
RESERVED = (
    "You can't use message attribute names beginning with 'AWS.' or 'Amazon'. These strings are "
    "reserved for internal use."
)
SSE = "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
RUNNING = "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
TYPES = (
    "The type of message (user) attribute 'Hello' is invalid. You must use only the following supported type "
    "prefixes: Binary, Number, "
    "String."
)


class Case(Struct, frozen=True):
    """A client that checks nothing by itself, and queues of one test."""

    sqs: Any
    name: str
    url: str
    fifo: str


Cause = Callable[[Case], Any]


def arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


def send(**parameters: Any) -> Cause:
    return lambda at: at.sqs.send_message(**{"QueueUrl": at.url, "MessageBody": "x", **parameters})


def send_fifo(**parameters: Any) -> Cause:
    given = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d", **parameters}
    return lambda at: at.sqs.send_message(
        QueueUrl=at.fifo, **{name: value for name, value in given.items() if value is not None}
    )


def attribute(name: str, **value: Any) -> Cause:
    return send(MessageAttributes={name: value})


def batch(*ids: str, body: str = "x") -> Cause:
    return lambda at: at.sqs.send_message_batch(
        QueueUrl=at.url, Entries=[{"Id": one, "MessageBody": body} for one in ids]
    )


def fifo_batch(**entry: Any) -> Cause:
    return lambda at: at.sqs.send_message_batch(QueueUrl=at.fifo, Entries=[{"Id": "a", "MessageBody": "x", **entry}])


def receive(**parameters: Any) -> Cause:
    return lambda at: at.sqs.receive_message(**{"QueueUrl": at.url, **parameters})


def create(**attributes: str) -> Cause:
    return lambda at: at.sqs.create_queue(QueueName=f"{at.name}-new", Attributes=attributes)


def configure(**attributes: str) -> Cause:
    return lambda at: at.sqs.set_queue_attributes(QueueUrl=at.url, Attributes=attributes)


def configure_fifo(**attributes: str) -> Cause:
    return lambda at: at.sqs.set_queue_attributes(QueueUrl=at.fifo, Attributes=attributes)


def redrive(policy: Callable[[Case], Any]) -> Cause:
    return lambda at: at.sqs.set_queue_attributes(QueueUrl=at.url, Attributes={"RedrivePolicy": _json(policy(at))})


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def permit(**parameters: Any) -> Cause:
    given = {"Label": "l", "AWSAccountIds": ["123456789012"], "Actions": ["SendMessage"], **parameters}
    return lambda at: at.sqs.add_permission(QueueUrl=at.url, **given)


def change(handle: str, seconds: int) -> Cause:
    return lambda at: at.sqs.change_message_visibility(QueueUrl=at.url, ReceiptHandle=handle, VisibilityTimeout=seconds)


def _received(at: Case, url: str, **parameters: Any) -> str:
    found = at.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2, **parameters)["Messages"]
    return str(found[0]["ReceiptHandle"])


def not_in_flight(at: Case) -> Any:
    send_fifo()(at)
    handle = _received(at, at.fifo, VisibilityTimeout=1)
    time.sleep(1.2)
    return at.sqs.change_message_visibility(QueueUrl=at.fifo, ReceiptHandle=handle, VisibilityTimeout=5)


def deleted_before(at: Case) -> Any:
    send()(at)
    handle = _received(at, at.url)
    at.sqs.delete_message(QueueUrl=at.url, ReceiptHandle=handle)
    return at.sqs.change_message_visibility(QueueUrl=at.url, ReceiptHandle=handle, VisibilityTimeout=5)


def expired(at: Case) -> Any:
    send_fifo()(at)
    handle = _received(at, at.fifo, VisibilityTimeout=1)
    time.sleep(1.2)
    return at.sqs.delete_message(QueueUrl=at.fifo, ReceiptHandle=handle)


def too_long_in_all(at: Case) -> Any:
    send()(at)
    handle = _received(at, at.url)
    time.sleep(1.1)
    return at.sqs.change_message_visibility(QueueUrl=at.url, ReceiptHandle=handle, VisibilityTimeout=43200)


def other_scope(at: Case) -> Any:
    send_fifo()(at)
    return at.sqs.set_queue_attributes(QueueUrl=at.fifo, Attributes={"DeduplicationScope": "messageGroup"})


def created_otherwise(at: Case) -> Any:
    return at.sqs.create_queue(QueueName=at.name, Attributes={"DelaySeconds": "7"})


def permitted_twice(at: Case) -> Any:
    permit()(at)
    return permit()(at)


def _dead(at: Case) -> None:
    target = at.sqs.create_queue(QueueName=f"{at.name}-dead")["QueueUrl"]
    at.sqs.send_message_batch(QueueUrl=target, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(10)])
    at.sqs.set_queue_attributes(
        QueueUrl=at.url,
        Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn(f"{at.name}-dead"), "maxReceiveCount": 3})},
    )


def move(**parameters: Any) -> Cause:
    def start(at: Case) -> Any:
        _dead(at)
        return at.sqs.start_message_move_task(**{"SourceArn": arn(f"{at.name}-dead"), **parameters})

    return start


def two_tasks(at: Case) -> Any:
    move(MaxNumberOfMessagesPerSecond=1, DestinationArn=arn(at.name))(at)
    return at.sqs.start_message_move_task(SourceArn=arn(f"{at.name}-dead"))


def to_other_type(at: Case) -> Any:
    return move(DestinationArn=arn(f"{at.name}.fifo"))(at)


def cancel(task: str, source: str = "") -> Cause:
    def run(at: Case) -> Any:
        handle = {"taskId": task, "sourceArn": arn(source or at.name)}
        return at.sqs.cancel_message_move_task(TaskHandle=base64.b64encode(json.dumps(handle).encode()).decode())

    return run


def cancelled_twice(at: Case) -> Any:
    handle = move(MaxNumberOfMessagesPerSecond=1, DestinationArn=arn(at.name))(at)["TaskHandle"]
    at.sqs.cancel_message_move_task(TaskHandle=handle)
    return at.sqs.cancel_message_move_task(TaskHandle=handle)


def of_parameter(given: object, parameter: str, reason: str) -> str:
    return f"Value {given} for parameter {parameter} is invalid. Reason: {reason}"


INVALID = "InvalidParameterValue"
VALUE = "InvalidAttributeValue"
ATTRIBUTE = "InvalidAttributeName"
# A text may name `{name}`, the queue of the test, and `{handle}`, any receipt handle.
TABLE: dict[str, tuple[Cause, str, int, str]] = {
    "no queue": (send(QueueUrl="http://h/000000000000/nowhere"), f"{OLD}NonExistentQueue", 400, NO_QUEUE),
    "no url": (lambda at: at.sqs.get_queue_url(QueueName="nowhere"), f"{OLD}NonExistentQueue", 400, NO_QUEUE),
    "no tag": (lambda at: at.sqs.receive_message(QueueUrl=f"{at.url}@t"), f"{OLD}NonExistentQueue", 400, NO_QUEUE),
    "other attributes": (
        created_otherwise,
        "QueueAlreadyExists",
        400,
        "A queue already exists with the same name and a different value for attribute DelaySeconds",
    ),
    "an id twice": (batch("a", "b", "a"), f"{OLD}BatchEntryIdsNotDistinct", 400, "Id a repeated."),
    "a batch too long": (
        batch(*map(str, range(10)), body="x" * 200_000),
        f"{OLD}BatchRequestTooLong",
        400,
        "Batch requests cannot be longer than 1048576 bytes. You have sent 2000000 bytes.",
    ),
    "an empty batch": (
        batch(),
        f"{OLD}EmptyBatchRequest",
        400,
        "There should be at least one SendMessageBatchRequestEntry in the request.",
    ),
    "an empty batch of deletes": (
        lambda at: at.sqs.delete_message_batch(QueueUrl=at.url, Entries=[]),
        f"{OLD}EmptyBatchRequest",
        400,
        "There should be at least one DeleteMessageBatchRequestEntry in the request.",
    ),
    "an empty batch of changes": (
        lambda at: at.sqs.change_message_visibility_batch(QueueUrl=at.url, Entries=[]),
        f"{OLD}EmptyBatchRequest",
        400,
        "There should be at least one ChangeMessageVisibilityBatchRequestEntry in the request.",
    ),
    "an empty id": (batch(""), f"{OLD}InvalidBatchEntryId", 400, ID),
    "a bad id": (batch("invalid:id"), f"{OLD}InvalidBatchEntryId", 400, ID),
    "a long id": (batch("x" * 81), f"{OLD}InvalidBatchEntryId", 400, ID),
    "too many entries": (
        batch(*map(str, range(20))),
        f"{OLD}TooManyEntriesInBatchRequest",
        400,
        "Maximum number of entries per request are 10. You have sent 20.",
    ),
    "an entry without id": (
        lambda at: at.sqs.send_message_batch(QueueUrl=at.url, Entries=[{"MessageBody": "x"}]),
        "MissingParameter",
        400,
        "The request must contain the parameter SendMessageBatchRequestEntry.1.Id.",
    ),
    "a fifo handle whose time is over": (
        not_in_flight,
        f"{OLD}MessageNotInflight",
        400,
        of_parameter("{handle}", "ReceiptHandle", GONE),
    ),
    "a handle of what was deleted": (deleted_before, INVALID, 400, of_parameter("{handle}", "ReceiptHandle", GONE)),
    "an expired fifo handle": (
        expired,
        INVALID,
        400,
        of_parameter("{handle}", "ReceiptHandle", "The receipt handle has expired."),
    ),
    "another scope": (
        other_scope,
        f"{OLD}UnsupportedOperation",
        400,
        "DeduplicationScope can only be changed while the queue is empty.",
    ),
    "purge of a tag": (
        lambda at: at.sqs.purge_queue(QueueUrl=f"{at.url}@t"),
        f"{OLD}UnsupportedOperation",
        400,
        "PurgeQueue works on the queue {name}, not on its tag t.",
    ),
    "too many actions": (
        permit(Actions=["SendMessage"] * 8),
        "OverLimit",
        403,
        "8 Actions were found, maximum allowed is 7.",
    ),
    "a label twice": (permitted_twice, INVALID, 400, of_parameter("l", "Label", "Already exists.")),
    "no label": (
        lambda at: at.sqs.remove_permission(QueueUrl=at.url, Label="none"),
        INVALID,
        400,
        of_parameter("none", "Label", "can't find label."),
    ),
    "an action of owners": (
        permit(Actions=["DeleteQueue"]),
        INVALID,
        400,
        of_parameter("SQS:DeleteQueue", "ActionName", "Only the queue owner is allowed to invoke this action."),
    ),
    "an unknown attribute": (configure(Nothing="1"), ATTRIBUTE, 400, "Unknown Attribute Nothing."),
    "a fifo attribute": (configure(FifoQueue="true"), ATTRIBUTE, 400, "Unknown Attribute FifoQueue."),
    "content deduplication": (
        create(ContentBasedDeduplication="true"),
        ATTRIBUTE,
        400,
        "Unknown Attribute ContentBasedDeduplication.",
    ),
    **{
        f"{name} by {how.__name__}": (
            how(**{name: value}),
            ATTRIBUTE,
            400,
            f"You can specify the {name} only when FifoQueue is set to true.",
        )
        for name, value in (("DeduplicationScope", "queue"), ("FifoThroughputLimit", "perQueue"))
        for how in (create, configure)
    },
    "too many tags": (
        lambda at: at.sqs.tag_queue(QueueUrl=at.url, Tags={str(number): "" for number in range(51)}),
        INVALID,
        400,
        "Too many tags added for queue {name}.",
    ),
    "no tags": (
        lambda at: at.sqs.tag_queue(QueueUrl=at.url, Tags={}),
        "MissingParameter",
        400,
        "The request must contain the parameter Tags.",
    ),
    "no keys of tags": (
        lambda at: at.sqs.untag_queue(QueueUrl=at.url, TagKeys=[]),
        INVALID,
        400,
        "Tag keys must be between 1 and 128 characters in length.",
    ),
    "asked for an unknown attribute": (
        lambda at: at.sqs.get_queue_attributes(QueueUrl=at.url, AttributeNames=["Nothing"]),
        ATTRIBUTE,
        400,
        "Unknown Attribute Nothing.",
    ),
    "two encryptions": (configure(KmsMasterKeyId="k", SqsManagedSseEnabled="true"), ATTRIBUTE, 400, SSE),
    **{
        f"{name} {value!r}": (create(**{name: value}), VALUE, 400, f"Invalid value for the parameter {name}.")
        for name, value in (
            ("DelaySeconds", "901"),
            ("MaximumMessageSize", "1023"),
            ("MessageRetentionPeriod", "59"),
            ("ReceiveMessageWaitTimeSeconds", "21"),
            ("VisibilityTimeout", "43201"),
            ("VisibilityTimeout", "x"),
            ("KmsDataKeyReusePeriodSeconds", "59"),
            ("SqsManagedSseEnabled", "maybe"),
        )
    },
    "no fifo any more": (
        configure_fifo(FifoQueue="false"),
        VALUE,
        400,
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
    ),
    "a bad scope": (
        configure_fifo(DeduplicationScope="all"),
        VALUE,
        400,
        "Invalid value for the parameter DeduplicationScope.",
    ),
    "illegal characters": (send(MessageBody="\x01"), "InvalidMessageContents", 400, CHARACTERS),
    "an empty body": (
        send(MessageBody=""),
        "MissingParameter",
        400,
        "The request must contain the parameter MessageBody.",
    ),
    "no handle": (
        lambda at: at.sqs.delete_message(QueueUrl=at.url, ReceiptHandle="garbage"),
        "ReceiptHandleIsInvalid",
        404,
        'The input receipt handle "garbage" is not a valid receipt handle.',
    ),
    "no handle to change": (
        change("garbage", 1),
        "ReceiptHandleIsInvalid",
        404,
        'The input receipt handle "garbage" is not a valid receipt handle.',
    ),
    "a handle too long": (
        change("x" * 1025, 1),
        "ReceiptHandleIsInvalid",
        404,
        f'The input receipt handle "{"x" * 1024}" is not a valid receipt handle.',
    ),
    "an address": (send(QueueUrl="/"), "InvalidAddress", 404, "The address / is not valid for this endpoint."),
    "a delay": (
        send(DelaySeconds=2000),
        INVALID,
        400,
        of_parameter(2000, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900."),
    ),
    "a delay below zero": (
        send(DelaySeconds=-1),
        INVALID,
        400,
        of_parameter(-1, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900."),
    ),
    "a delay in a fifo queue": (send_fifo(DelaySeconds=2), INVALID, 400, of_parameter(2, "DelaySeconds", OTHER_TYPE)),
    "a deduplication id": (
        send(MessageDeduplicationId="d"),
        INVALID,
        400,
        of_parameter("d", "MessageDeduplicationId", OTHER_TYPE),
    ),
    "no group": (
        send_fifo(MessageGroupId=None),
        "MissingParameter",
        400,
        "The request must contain the parameter MessageGroupId.",
    ),
    "no group in a batch": (
        fifo_batch(MessageDeduplicationId="d"),
        INVALID,
        400,
        "The request must contain the parameter MessageGroupId.",
    ),
    "no deduplication": (send_fifo(MessageDeduplicationId=None), INVALID, 400, NO_DEDUPLICATION),
    "no deduplication in a batch": (fifo_batch(MessageGroupId="g"), INVALID, 400, NO_DEDUPLICATION),
    **{
        f"a bad {name}": (
            send_fifo(**{name: "a b"}),
            INVALID,
            400,
            of_parameter(
                "a b", name, f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length."
            ),
        )
        for name in ("MessageGroupId", "MessageDeduplicationId")
    },
    "a message too large": (
        send(MessageBody="x" * 1_048_577),
        INVALID,
        400,
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
    ),
    "too many messages": (
        receive(MaxNumberOfMessages=11),
        INVALID,
        400,
        of_parameter(11, "MaxNumberOfMessages", "Must be between 1 and 10, if provided."),
    ),
    "a wait": (
        receive(WaitTimeSeconds=50),
        INVALID,
        400,
        of_parameter(50, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided."),
    ),
    "a lease": (
        receive(VisibilityTimeout=43201),
        INVALID,
        400,
        of_parameter(43201, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided."),
    ),
    "a lease too long in all": (
        too_long_in_all,
        INVALID,
        400,
        of_parameter(
            43200, "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        ),
    ),
    "a text for a number": (
        attribute("Hello", DataType="Number", StringValue="world"),
        INVALID,
        400,
        "Can't cast the value of message (user) attribute 'Hello' to a number.",
    ),
    "an empty text": (
        attribute("Hello", DataType="String", StringValue=""),
        INVALID,
        400,
        "Message (user) attribute 'Hello' must contain a non-empty value of type 'String'.",
    ),
    "no type": (
        attribute("Hello", StringValue="x"),
        INVALID,
        400,
        "The message (user) attribute 'Hello' must contain a non-empty message attribute value.",
    ),
    "an unknown type": (attribute("Hello", DataType="Invalid", StringValue="x"), INVALID, 400, TYPES),
    "a list": (
        attribute("Hello", DataType="StringList", StringListValues=["World"]),
        INVALID,
        400,
        "Message attribute list values in SendMessage operation are not supported.",
    ),
    "a reserved name": (attribute("AWS.Hello", **text("x")), INVALID, 400, RESERVED),
    "a reserved name in small letters": (attribute("amazon.Hello", **text("x")), INVALID, 400, RESERVED),
    "a long name": (
        attribute("a" * 257, **text("x")),
        INVALID,
        400,
        "Message (user) attribute name must be shorter than 256 bytes.",
    ),
    "a long type": (
        attribute("a", DataType=f"String.{'a' * 250}", StringValue="x"),
        INVALID,
        400,
        "Message (user) attribute type must be shorter than 256 bytes.",
    ),
    "too many attributes": (
        send(MessageAttributes={f"a{n}": text("x") for n in range(11)}),
        INVALID,
        400,
        "Number of message attributes [11] exceeds the allowed maximum [10].",
    ),
    "a system attribute": (
        send(MessageSystemAttributes={"Hello": text("x")}),
        INVALID,
        400,
        "Message system attribute name 'Hello' is invalid.",
    ),
    "a queue name": (lambda at: at.sqs.create_queue(QueueName="a b"), INVALID, 400, NAME),
    "a name like a fifo queue's": (lambda at: at.sqs.create_queue(QueueName="a.fifo"), INVALID, 400, NAME),
    "a fifo queue's name": (
        lambda at: at.sqs.create_queue(QueueName="a", Attributes={"FifoQueue": "true"}),
        INVALID,
        400,
        FIFO_NAME,
    ),
    "no name": (
        lambda at: at.sqs.create_queue(QueueName=""),
        INVALID,
        400,
        "Value for parameter QueueName is invalid. Reason: Must specify a queue name.",
    ),
    "a policy without count": (
        redrive(lambda at: "{}"),
        INVALID,
        400,
        of_parameter("{}", "RedrivePolicy", "Redrive policy does not contain mandatory attribute: maxReceiveCount."),
    ),
    "a policy without target": (
        redrive(lambda at: '{"maxReceiveCount":3}'),
        INVALID,
        400,
        of_parameter(
            '{"maxReceiveCount":3}',
            "RedrivePolicy",
            "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
        ),
    ),
    "a policy with a bad target": (
        redrive(lambda at: '{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}'),
        INVALID,
        400,
        of_parameter(
            '{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}',
            "RedrivePolicy",
            "Invalid value for deadLetterTargetArn.",
        ),
    ),
    "a policy with a bad count": (
        redrive(lambda at: f'{{"deadLetterTargetArn":"{arn("x")}","maxReceiveCount":1001}}'),
        INVALID,
        400,
        of_parameter(
            f'{{"deadLetterTargetArn":"{arn("x")}","maxReceiveCount":1001}}',
            "RedrivePolicy",
            "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive.",
        ),
    ),
    "a policy without a queue": (
        redrive(lambda at: f'{{"deadLetterTargetArn":"{arn("nowhere")}","maxReceiveCount":3}}'),
        INVALID,
        400,
        of_parameter(
            f'{{"deadLetterTargetArn":"{arn("nowhere")}","maxReceiveCount":3}}',
            "RedrivePolicy",
            "Dead letter target does not exist.",
        ),
    ),
    "a policy with a fifo queue": (
        redrive(lambda at: f'{{"deadLetterTargetArn":"{arn(at.name)}.fifo","maxReceiveCount":3}}'),
        INVALID,
        400,
        of_parameter(
            f'{{"deadLetterTargetArn":"{arn("{name}")}.fifo","maxReceiveCount":3}}',
            "RedrivePolicy",
            "Dead-letter queue must be same type of queue as the source..",
        ),
    ),
    "no source": (
        lambda at: at.sqs.start_message_move_task(SourceArn=arn("nowhere")),
        "ResourceNotFoundException",
        404,
        "The resource that you specified for the SourceArn parameter doesn't exist.",
    ),
    "no destination": (
        move(DestinationArn=arn("nowhere")),
        "ResourceNotFoundException",
        404,
        "The resource that you specified for the DestinationArn parameter doesn't exist.",
    ),
    "no dead-letter queue": (
        lambda at: at.sqs.start_message_move_task(SourceArn=arn(at.name)),
        INVALID,
        400,
        "Source queue must be configured as a Dead Letter Queue.",
    ),
    "a second task": (two_tasks, INVALID, 400, RUNNING),
    "a task to another type": (
        to_other_type,
        INVALID,
        400,
        of_parameter(
            arn("{name}.fifo"), "DestinationArn", "The destination queue must be same type of queue as the source."
        ),
    ),
    "no task handle": (
        lambda at: at.sqs.cancel_message_move_task(TaskHandle="foobared"),
        INVALID,
        400,
        "Value for parameter TaskHandle is invalid.",
    ),
    "no source of a task": (
        cancel("x", "nowhere"),
        "ResourceNotFoundException",
        404,
        "The resource that you specified for the SourceArn parameter doesn't exist.",
    ),
    "no task": (cancel("x"), "ResourceNotFoundException", 404, "Task does not exist."),
    "a task that has ended": (
        cancelled_twice,
        INVALID,
        400,
        "Value for parameter TaskHandle is invalid. Reason: Only active tasks can be cancelled.",
    ),
}
