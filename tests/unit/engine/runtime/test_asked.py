"""What a request asks is noted for that request alone, and the first verb is what it asked for."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from runtime.asked import Asked, current, look, note, note_claim, note_hidden


def test_the_first_verb_counts_and_nothing_is_noted_where_nobody_listens() -> None:
    note("alice", "k", "send", "q")
    asked = Asked("10.0.0.1")
    context = copy_context()
    context.run(current.set, asked)
    context.run(note_claim, "k" * 200)
    assert (asked.key_id, asked.verb) == ("k" * 128, "")
    context.run(note, "alice", "key", "redrive", "dead", "", "to")
    context.run(note, "alice", "key", "send", "to")
    context.run(note_hidden)
    assert (asked.principal, asked.key_id, asked.verb, asked.queue, asked.subject) == (
        "alice",
        "key",
        "redrive",
        "dead",
        "to",
    )
    assert asked.hidden and asked.peer == "10.0.0.1"


async def test_requests_side_by_side_have_their_own() -> None:
    async def serve(name: str) -> Asked:
        asked = Asked("")
        current.set(asked)
        await asyncio.sleep(0)
        note(name, "", "send", name)
        return asked

    before = current.get()
    found = await asyncio.gather(*(asyncio.create_task(serve(f"p{n}")) for n in range(20)))
    assert [one.principal for one in found] == [f"p{n}" for n in range(20)]
    assert current.get() is before


async def test_a_look_that_needs_the_right_of_a_change_is_no_change_and_one_after_it_is() -> None:
    @look
    async def looked() -> None:
        note("alice", "", "redrive", "dead")

    asked = Asked("")
    current.set(asked)
    await looked()
    assert (asked.verb, asked.is_change) == ("redrive", False)
    note("alice", "", "redrive", "dead", "", "to")
    assert asked.is_change and (asked.subject, asked.others) == ("to", [])
