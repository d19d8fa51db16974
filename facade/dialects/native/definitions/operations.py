"""Operations on definitions: what is there as one document, and a document made true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from facade.dialects.native.definitions.translate import definitions_of, difference_reply, document
from facade.dialects.native.definitions.wire import AppliedReply, ApplyQuery, DefinitionsBody, DefinitionsQuery
from facade.dialects.native.reference.examples_watching import DEFINITIONS
from facade.http.operation import Answer, Call, Operation

if TYPE_CHECKING:
    from engine.engine import Engine


async def get_definitions(engine: Engine, call: Call) -> Answer:
    """What the caller may see of queues, tags, levels, alert policies and users."""
    return Answer(document(await engine.definitions.get_definitions(call.by, call.query.prefix)))


async def put_definitions(engine: Engine, call: Call) -> Answer:
    """Create and change what differs from a document; with `prune` delete what it does not have."""
    asked: ApplyQuery = call.query
    wanted = definitions_of(call.body)
    found = await engine.definitions.put_definitions(call.by, wanted, dry_run=asked.dry_run, prune=asked.prune)
    return Answer(AppliedReply(dry_run=asked.dry_run, changes=[difference_reply(one) for one in found]))


OPERATIONS = (
    Operation(
        name="get_definitions",
        method="GET",
        path="/v1/definitions",
        group="Definitions",
        summary="Queues, tags, levels, alert policies and users as one document",
        run=get_definitions,
        replies={200: DefinitionsBody},
        example=DEFINITIONS["get_definitions"],
        query=DefinitionsQuery,
    ),
    Operation(
        name="put_definitions",
        method="PUT",
        path="/v1/definitions",
        group="Definitions",
        summary="Create and change what differs from a document; `dry_run` says what would be done",
        run=put_definitions,
        replies={200: AppliedReply},
        example=DEFINITIONS["put_definitions"],
        body=DefinitionsBody,
        query=ApplyQuery,
        bulky=True,
        codes=(
            "not_allowed_on_queue",
            "tag_exists",
            "queue_exists",
            "queue_not_found",
            "tag_not_found",
            "queue_in_use",
            "quota_exceeded",
        ),
    ),
)
