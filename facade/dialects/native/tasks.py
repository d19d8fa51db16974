"""Operations on what could not be processed: redrive tasks, and parked groups.

Each reads its parameters, asks the engine, and renders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from facade.dialects.native.reference import examples
from facade.dialects.native.wire.letters.replies import (
    OutcomesReply,
    PreviewReply,
    PreviewsReply,
    TasksReply,
    outcomes_reply,
    preview_reply,
)
from facade.dialects.native.wire.letters.shapes import OutcomesQuery, PreviewBody, RedriveBody, TasksQuery
from facade.dialects.native.wire.render import parked_reply, task_reply
from facade.dialects.native.wire.replies import ParkedReply, TaskReply, UnparkReply
from facade.dialects.native.wire.shapes import ParkedQuery, UnparkBody
from facade.dialects.native.wire.translate import choice_of, filter_of
from facade.dialects.native.wire.units import QUEUE_RULE, TASK_RULE
from facade.http.operation import Answer, Call, Operation

if TYPE_CHECKING:
    from engine.engine import Engine


async def redrive(engine: Engine, call: Call) -> Answer:
    """Start a task that sends messages of a dead-letter queue on."""
    body: RedriveBody = call.body
    task = await engine.tasks.redrive(
        call.by,
        call.path["queue"],
        body.destination,
        filter_of(body.filter),
        body.rate,
        ids=body.ids,
        choice=choice_of(body),
    )
    return Answer(task_reply(task), 202, (("location", f"/v1/tasks/{task.id}"),))


async def preview_redrive(engine: Engine, call: Call) -> Answer:
    """What such a task would do."""
    body: PreviewBody = call.body
    preview = await engine.tasks.preview_redrive(
        call.by, call.path["queue"], body.destination, filter_of(body.filter), ids=body.ids, choice=choice_of(body)
    )
    return Answer(preview_reply(preview))


async def redrive_all(engine: Engine, call: Call) -> Answer:
    """Start such a task for each dead-letter queue."""
    body: RedriveBody = call.body
    tasks = await engine.tasks.redrive_all(
        call.by, body.destination, filter_of(body.filter), body.rate, ids=body.ids, choice=choice_of(body)
    )
    return Answer(TasksReply(tasks=[task_reply(task) for task in tasks], next=None), 202)


async def preview_redrive_all(engine: Engine, call: Call) -> Answer:
    """What such tasks would do."""
    body: PreviewBody = call.body
    previews = await engine.tasks.preview_redrive_all(
        call.by, body.destination, filter_of(body.filter), ids=body.ids, choice=choice_of(body)
    )
    return Answer(PreviewsReply(previews=[preview_reply(preview) for preview in previews]))


async def list_tasks(engine: Engine, call: Call) -> Answer:
    """The tasks of all queues that the caller may redrive."""
    asked: TasksQuery = call.query
    status, after = (None if value is UNSET else value for value in (asked.status, asked.next))
    tasks, more = await engine.tasks.all_tasks(call.by, status, asked.limit, after)
    return Answer(TasksReply(tasks=[task_reply(task) for task in tasks], next=more))


async def task_outcomes(engine: Engine, call: Call) -> Answer:
    """What came of each letter that a task has come to."""
    asked: OutcomesQuery = call.query
    after = None if asked.next is UNSET else asked.next
    return Answer(outcomes_reply(await engine.tasks.task_outcomes(call.by, call.path["task"], asked.limit, after)))


async def get_task(engine: Engine, call: Call) -> Answer:
    """A task and its progress."""
    return Answer(task_reply(await engine.tasks.get_task(call.by, call.path["task"])))


async def cancel_task(engine: Engine, call: Call) -> Answer:
    """Cancel a task; what it has moved stays moved."""
    return Answer(task_reply(await engine.tasks.cancel_task(call.by, call.path["task"])))


async def list_parked(engine: Engine, call: Call) -> Answer:
    """The parked groups of a queue."""
    asked: ParkedQuery = call.query
    tag, after = (None if value is UNSET else value for value in (asked.tag, asked.next))
    return Answer(parked_reply(await engine.tasks.parked_groups(call.by, call.path["queue"], tag, asked.limit, after)))


async def unpark(engine: Engine, call: Call) -> Answer:
    """Go on with a parked group."""
    body: UnparkBody = call.body
    return Answer(
        UnparkReply(
            unparked=await engine.tasks.unpark(call.by, call.path["queue"], body.tag, body.group, kill=body.kill)
        )
    )


OPERATIONS = (
    Operation(
        name="list_parked",
        method="GET",
        path="/v1/queues/{queue}/parked",
        group="Tasks",
        summary="The parked groups of a FIFO queue, with the messages that have parked them",
        run=list_parked,
        replies={200: ParkedReply},
        example=examples.TASKS["list_parked"],
        rules={"queue": QUEUE_RULE},
        query=ParkedQuery,
        codes=("queue_not_found", "tag_not_found", "not_allowed_on_queue"),
    ),
    Operation(
        name="unpark",
        method="POST",
        path="/v1/queues/{queue}/unpark",
        group="Tasks",
        summary="Go on with a parked group of a FIFO queue; may be repeated",
        run=unpark,
        replies={200: UnparkReply},
        example=examples.TASKS["unpark"],
        rules={"queue": QUEUE_RULE},
        body=UnparkBody,
        codes=("queue_not_found", "tag_not_found", "not_allowed_on_queue"),
    ),
    Operation(
        name="redrive",
        method="POST",
        path="/v1/queues/{queue}/redrive",
        group="Tasks",
        summary="Send messages of a dead-letter queue back, or to another queue",
        run=redrive,
        replies={202: TaskReply},
        example=examples.TASKS["redrive"],
        rules={"queue": QUEUE_RULE},
        body=RedriveBody,
        body_optional=True,
        codes=("queue_not_found", "not_allowed_on_queue", "queue_in_use"),
    ),
    Operation(
        name="preview_redrive",
        method="POST",
        path="/v1/queues/{queue}/redrive/preview",
        group="Tasks",
        summary="What a redrive would do: how many messages would go where; nothing is moved",
        run=preview_redrive,
        replies={200: PreviewReply},
        example=examples.TASKS["preview_redrive"],
        rules={"queue": QUEUE_RULE},
        body=PreviewBody,
        body_optional=True,
        codes=("queue_not_found", "not_allowed_on_queue"),
    ),
    Operation(
        name="redrive_all",
        method="POST",
        path="/v1/redrive",
        group="Tasks",
        summary="Redrive all dead-letter queues that the caller may, or those of some ids: a task for each",
        run=redrive_all,
        replies={202: TasksReply},
        example=examples.TASKS["redrive_all"],
        body=RedriveBody,
        body_optional=True,
        codes=("queue_not_found", "not_allowed_on_queue", "queue_in_use"),
    ),
    Operation(
        name="preview_redrive_all",
        method="POST",
        path="/v1/redrive/preview",
        group="Tasks",
        summary="What that would do; nothing is moved",
        run=preview_redrive_all,
        replies={200: PreviewsReply},
        example=examples.TASKS["preview_redrive_all"],
        body=PreviewBody,
        body_optional=True,
        codes=("queue_not_found", "not_allowed_on_queue"),
    ),
    Operation(
        name="list_tasks",
        method="GET",
        path="/v1/tasks",
        group="Tasks",
        summary="Redrive tasks of the last three days, newest first",
        run=list_tasks,
        replies={200: TasksReply},
        example=examples.TASKS["list_tasks"],
        query=TasksQuery,
    ),
    Operation(
        name="task_outcomes",
        method="GET",
        path="/v1/tasks/{task}/outcomes",
        group="Tasks",
        summary="What came of each message of a redrive task, also while it runs",
        run=task_outcomes,
        replies={200: OutcomesReply},
        example=examples.TASKS["task_outcomes"],
        rules={"task": TASK_RULE},
        query=OutcomesQuery,
        codes=("task_not_found",),
    ),
    Operation(
        name="get_task",
        method="GET",
        path="/v1/tasks/{task}",
        group="Tasks",
        summary="A redrive task and its progress",
        run=get_task,
        replies={200: TaskReply},
        example=examples.TASKS["get_task"],
        rules={"task": TASK_RULE},
        codes=("task_not_found",),
    ),
    Operation(
        name="cancel_task",
        method="DELETE",
        path="/v1/tasks/{task}",
        group="Tasks",
        summary="Cancel a redrive task; what it has moved stays moved",
        run=cancel_task,
        replies={200: TaskReply},
        example=examples.TASKS["cancel_task"],
        rules={"task": TASK_RULE},
        codes=("task_not_found", "task_ended"),
    ),
)
