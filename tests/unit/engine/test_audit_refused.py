"""What is written down of a request that no task serves: the same as of any other."""

from __future__ import annotations

from typing import Any, cast

from engine.errors import NotAuthorised
from engine.queues.callers.audit import FAILURES_A_SECOND, Audit
from engine.settings import EngineSettings
from engine.shapes import Principal
from runtime.asked import note
from runtime.counters import Counters
from schemas.vocabulary import Verb
from schemas.wire import decode

BY = Principal("alice", key_id="a1")
ERROR = NotAuthorised("key 'a1' was revoked", field="key_id", given="a1")


def an_audit() -> Audit:
    """It is not started, so it keeps its records."""
    return Audit(EngineSettings(), "w", cast(Any, None), Counters())


def kept(audit: Audit) -> list[dict[str, Any]]:
    found = [decode(value) for value, _ in audit._left]
    return [
        {name: getattr(one, name) for name in one.__struct_fields__ if name not in ("at_ms", "number")} for one in found
    ]


async def test_a_refusal_is_written_down_as_that_of_a_task() -> None:
    audit = an_audit()
    asked = audit.begin("10.0.0.1")
    note(BY.id, BY.key_id, Verb.RECEIVE, "q")
    await audit.end(asked, "sqs.ReceiveMessage", 403, ERROR, "id-1")
    audit.refused("10.0.0.1", BY, Verb.RECEIVE, "q", "sqs.ReceiveMessage", 403, ERROR, "id-1")
    first, second = kept(audit)
    assert first == second
    assert (first["principal"], first["key_id"], first["outcome"], first["error"]) == (
        "alice",
        "a1",
        "refused",
        "not_authorised",
    )


async def test_a_flood_of_them_is_bounded() -> None:
    audit = an_audit()
    for _ in range(FAILURES_A_SECOND + 5):
        audit.refused("10.0.0.1", BY, Verb.RECEIVE, "q", "sqs.ReceiveMessage", 403, ERROR, "")
    assert len(kept(audit)) == FAILURES_A_SECOND
