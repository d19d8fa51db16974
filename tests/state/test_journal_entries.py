"""The plane makes the same journal records as Python of what scripts leave in the outbox."""

from __future__ import annotations

import json
import random
import secrets
from pathlib import Path

import pytest
import redis.asyncio

import state
from facade.http.sockets.library import try_formats
from schemas.vocabulary import EventKind
from state.keys import Unit, UnitKeys
from state.redis.connection import Connection
from state.replies import Window
from state.store import Store
from tests.services import Services
from tests.unit.facade.test_plane_formats import JOURNAL, SEED, formats, number, text, values_of

# Packs the rows of ARGV 1 by the function that scripts use.
PACK = (
    (Path(state.__file__).parent / "lua" / "include" / "unit.lua").read_text()
    + """
redis.call('HSET', KEYS[1], 'epoch', 1)
for _, r in ipairs(cjson.decode(ARGV[1])) do
  local times, reason = r[5] ~= cjson.null and r[5] or nil, r[6] ~= cjson.null and r[6] or nil
  journal(KEYS[1], KEYS[2], r[1], r[2], r[3], r[4], times, reason)
end
"""
)
ROUNDS, ROWS = 100, 1_000


def row(chance: random.Random) -> list[object]:
    """An entry but for its seq: Lua's numbers have 53 bits."""
    offsets = [number(chance, 40) for _ in range(chance.choice([1, 1, 2, 3, 20, 70]))]
    times = chance.choice([None, [number(chance, 52) * chance.choice([1, 1, -1]) for _ in offsets]])
    reason = chance.choice([None, "", "killed", text(chance)])
    return [number(chance, 48), chance.choice(list(EventKind)).value, number(chance, 16), offsets, times, reason]


@pytest.mark.usefixtures("library")
async def test_what_scripts_pack_is_written_to_the_journal_as_python_writes_it(
    connection: Connection, stack: Services
) -> None:
    chance = random.Random(SEED)
    client = redis.asyncio.Redis.from_url(stack.redis_url)
    for _ in range(ROUNDS):
        prefix, unit = f"j{secrets.token_hex(3)}", Unit(secrets.token_hex(6), chance.randrange(64))
        keys, store = UnitKeys(prefix, unit), Store(connection, prefix, Window(100, 1_000_000))
        await client.eval(PACK, 2, keys.meta, keys.outbox, json.dumps([row(chance) for _ in range(ROWS)]))
        packed = await client.lrange(keys.outbox, 0, -1)
        entries = await store.upkeep.drain(unit, 1, done_seq=0, max=ROWS)
        (found,) = try_formats(formats(), [[JOURNAL, "orders", unit.incarnation, unit.partition, packed]])
        assert len(entries) == ROWS
        assert found == [values_of("orders", unit.incarnation, unit.partition, entries), entries[0].at_ms, ROWS]
        await client.unlink(keys.meta, keys.outbox)
    await client.aclose()
