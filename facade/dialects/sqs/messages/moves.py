"""StartMessageMoveTask, CancelMessageMoveTask, ListMessageMoveTasks: the engine's redrive tasks in
the words of SQS.

A task handle names task and source, as that of AWS does.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING

import msgspec

from engine.errors import NotAllowedOnQueue, QueueNotFound
from engine.rules.limits import A_DEAD_LETTER_QUEUE
from engine.shapes import TaskInfo
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.queues.redrive import json_object
from facade.dialects.sqs.wire.errors import (
    INVALID_PARAMETER,
    QUEUE_DOES_NOT_EXIST,
    RESOURCE_NOT_FOUND,
    SqsError,
    invalid,
    missing,
)
from facade.dialects.sqs.wire.limits import MOVE_RATE, MOVE_TASKS
from facade.dialects.sqs.wire.replies import MovedReply, MoveReply, MovesReply, TaskReply
from schemas.vocabulary import TaskStatus

if TYPE_CHECKING:
    from engine.engine import Engine


def _queue(place: Place, parameter: str, arn: str) -> str:
    name = place.of_arn(arn)
    if name is None:
        raise invalid(parameter, arn, "It is not an ARN of SQS.")
    return name


def _no_queue(parameter: str) -> SqsError:
    return SqsError(RESOURCE_NOT_FOUND, f"The resource that you specified for the {parameter} parameter doesn't exist.")


def _refused(error: NotAllowedOnQueue, destination: str | None) -> SqsError:
    """Why the engine does not start a task."""
    if error.field == "destination":
        return invalid("DestinationArn", destination, "The destination queue must be same type of queue as the source.")
    if error.limit == A_DEAD_LETTER_QUEUE:
        return SqsError(INVALID_PARAMETER, "Source queue must be configured as a Dead Letter Queue.")
    about = "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
    return SqsError(INVALID_PARAMETER, about)


async def start_message_move_task(engine: Engine, call: Call) -> TaskReply:
    """Send what is in a dead-letter queue on: to where each came from, or to one queue."""
    given = call.body
    if not given.source_arn:
        raise missing("SourceArn")
    source = _queue(call.place, "SourceArn", given.source_arn)
    destination = _queue(call.place, "DestinationArn", given.destination_arn) if given.destination_arn else None
    rate = given.max_number_of_messages_per_second
    if rate is not None and not MOVE_RATE[0] <= rate <= MOVE_RATE[1]:
        raise invalid(
            "MaxNumberOfMessagesPerSecond", rate, f"Must be between {MOVE_RATE[0]} and {MOVE_RATE[1]}, if provided."
        )
    try:
        task = await engine.tasks.redrive(call.by, source, destination, None, rate or 0, True)
    except QueueNotFound as error:
        raise _no_queue("SourceArn" if error.given == source else "DestinationArn") from error
    except NotAllowedOnQueue as error:
        raise _refused(error, given.destination_arn) from error
    return TaskReply(task_handle=_handle(task, call.place))


def _handle(task: TaskInfo, place: Place) -> str:
    return b64encode(msgspec.json.encode({"taskId": task.id, "sourceArn": place.arn(task.source)})).decode("ascii")


def _named(place: Place, handle: str) -> tuple[str, str]:
    """The task and the source queue that a handle names. Raises SqsError."""
    try:
        found = json_object(b64decode(handle, validate=True).decode()) or {}
    except (Base64Error, ValueError):
        found = {}
    task, source = found.get("taskId"), place.of_arn(str(found.get("sourceArn")))
    if not isinstance(task, str) or source is None:
        raise invalid("TaskHandle", None, "")
    return task, source


async def cancel_message_move_task(engine: Engine, call: Call) -> MovedReply:
    """Stop a running task; what was moved stays moved."""
    if not call.body.task_handle:
        raise missing("TaskHandle")
    task_id, source = _named(call.place, call.body.task_handle)
    try:
        await engine.queues.record(source, call.by)
    except QueueNotFound as error:
        raise _no_queue("SourceArn") from error
    task = await engine.tasks.cancel_task(call.by, task_id)
    return MovedReply(approximate_number_of_messages_moved=task.moved)


async def list_message_move_tasks(engine: Engine, call: Call) -> MovesReply:
    """The newest tasks of a source, newest first."""
    given = call.body
    if not given.source_arn:
        raise missing("SourceArn")
    most = MOVE_TASKS[0] if given.max_results is None else given.max_results
    if not MOVE_TASKS[0] <= most <= MOVE_TASKS[1]:
        raise invalid("MaxResults", most, f"Must be between {MOVE_TASKS[0]} and {MOVE_TASKS[1]}, if provided.")
    try:
        tasks = await engine.tasks.list_tasks(call.by, _queue(call.place, "SourceArn", given.source_arn))
    except QueueNotFound as error:
        raise _no_queue("SourceArn") from error
    return MovesReply(results=[_shown(task, call.place) for task in tasks[:most]] or None)


def _shown(task: TaskInfo, place: Place) -> MoveReply:
    running, failed = task.status == TaskStatus.RUNNING, task.status == TaskStatus.FAILED
    return MoveReply(
        task_handle=_handle(task, place) if running else None,
        status=task.status.upper(),
        source_arn=place.arn(task.source),
        destination_arn=None if task.destination is None else place.arn(task.destination),
        max_number_of_messages_per_second=task.rate or None,
        approximate_number_of_messages_moved=task.moved,
        approximate_number_of_messages_to_move=max(task.expected, task.moved),
        # A task fails for one reason: a queue that it works on was deleted.
        failure_reason=QUEUE_DOES_NOT_EXIST.code if failed else None,
        started_timestamp=task.created_at_ms,
    )
