"""Access keys: their roles, when they count, how they are rotated, when they were used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, KeyNotFound, NotAuthenticated, NotAuthorised, QueueNotFound
from engine.queues.callers import keys
from engine.rules.grants import ROLES
from engine.shapes import Principal, SendEntry
from runtime.clock import now_ms
from schemas.records import KeyRecord
from schemas.records.settings import QueueSettings
from schemas.vocabulary import Role, Verb
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, eventually
from tests.integration.test_grants import ASKED, may

ALICE = Principal("alice")
SECRET = "the first administrator's"


@pytest.fixture
async def guarded(make_engine: MakeEngine) -> Engine:
    engine = await make_engine(auth="required", admin_key_secret=SECRET, default_partitions=1)
    await engine.queues.create_queue(ALICE, "q", QueueSettings())
    return engine


def opens(engine: Engine, key_id: str, secret: str) -> bool:
    """Whether a key opens anything; both ways to prove that it is one's own must agree."""

    def tried(prove: Callable[[], Principal]) -> bool:
        try:
            prove()
        except NotAuthenticated:
            return False
        return True

    plain = tried(lambda: engine.callers.authenticate(key_id, secret))
    assert plain == tried(lambda: engine.callers.authenticate_signed(key_id, lambda known: known == secret))
    return plain


async def test_a_key_counts_until_it_expires_and_not_while_it_is_disabled(guarded: Engine) -> None:
    _, secret = await guarded.callers.create_key(BY, "k", "alice", "member", now_ms() + 1_500)
    assert opens(guarded, "k", secret)
    assert (await guarded.callers.set_key(BY, "k", disabled=True)).disabled
    assert not opens(guarded, "k", secret)
    await guarded.callers.set_key(BY, "k", disabled=False)
    assert opens(guarded, "k", secret)

    async def expired() -> bool:
        return not opens(guarded, "k", secret)

    await eventually(expired, within_s=5)
    await guarded.callers.set_key(BY, "k", expires_at_ms=0)
    assert opens(guarded, "k", secret), "0 = never"
    with pytest.raises(InvalidValue, match="later than now"):
        await guarded.callers.set_key(BY, "k", expires_at_ms=now_ms() - 1)
    with pytest.raises(KeyNotFound):
        await guarded.callers.set_key(BY, "none", disabled=True)


async def test_a_key_rotates_its_own_secret_and_the_old_one_counts_for_a_while(guarded: Engine) -> None:
    _, first = await guarded.callers.create_key(BY, "k", "alice", "member")
    await guarded.callers.create_key(BY, "other", "alice", "member")
    second = await guarded.callers.rotate_key(guarded.callers.authenticate("k", first), "k", 1_500)
    assert opens(guarded, "k", first) and opens(guarded, "k", second)
    with pytest.raises(NotAuthorised):
        await guarded.callers.rotate_key(guarded.callers.authenticate("k", first), "k", 0)
    with pytest.raises(NotAuthorised):
        await guarded.callers.rotate_key(guarded.callers.authenticate("k", second), "other", 0)

    async def gone() -> bool:
        return not opens(guarded, "k", first)

    await eventually(gone, within_s=5)
    third = await guarded.callers.rotate_key(guarded.callers.authenticate("k", second), "k", 0)
    assert not opens(guarded, "k", second) and opens(guarded, "k", third)
    for bad in (-1, 7 * 86_400_000 + 1):
        with pytest.raises(InvalidValue):
            await guarded.callers.rotate_key(BY, "k", bad)


async def test_the_first_administrators_key_is_rotated_too(guarded: Engine) -> None:
    root = guarded.callers.authenticate("admin", SECRET)
    secret = await guarded.callers.rotate_key(root, "admin", 0)
    assert not opens(guarded, "admin", SECRET)
    assert guarded.callers.authenticate("admin", secret).admin
    await guarded.callers.delete_key(guarded.callers.authenticate("admin", secret), "admin")
    assert opens(guarded, "admin", SECRET), "that of the settings counts again"


async def test_when_a_key_was_used_last_is_known(guarded: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "NOTE_S", 0.0)
    _, secret = await guarded.callers.create_key(BY, "k", "alice", "member")
    (info,) = await guarded.callers.list_keys(BY)
    assert info.last_used_at_ms == 0
    before = now_ms()
    assert not opens(guarded, "k", "wrong")
    guarded.callers.authenticate("k", secret)

    async def noted() -> bool:
        (info,) = await guarded.callers.list_keys(BY)
        return before <= info.last_used_at_ms <= now_ms()

    await eventually(noted)
    await guarded.callers.delete_key(BY, "k")
    await guarded.callers.create_key(BY, "k", "alice", "member")
    (info,) = await guarded.callers.list_keys(BY)
    assert info.last_used_at_ms == 0, "another key of that id"


async def of_role(engine: Engine, role: Role, principal: str = "rita") -> Principal:
    key_id, secret = await engine.callers.create_key(BY, f"{role}-{principal}", principal, role)
    return engine.callers.authenticate(key_id, secret)


async def test_every_verb_on_a_queue_by_every_role(guarded: Engine) -> None:
    for role in Role:
        by = await of_role(guarded, role)
        for verb in sorted(ASKED, key=lambda verb: verb == Verb.DELETE_QUEUE):
            await guarded.queues.create_queue(ALICE, "q", QueueSettings())
            assert await may(ASKED[verb](guarded, by)) == (verb in ROLES[role]), (role, verb)
    with pytest.raises(InvalidValue):
        await guarded.callers.create_key(BY, "k", "alice", "king")


async def test_a_reader_changes_nothing_of_its_own_either(guarded: Engine) -> None:
    reader = await of_role(guarded, Role.READER, "alice")
    for verb, ask in ASKED.items():
        assert await may(ask(guarded, reader)) == (verb in ROLES[Role.READER]), verb
    half = await guarded.transactions.prepare(ALICE, "q", "group", [SendEntry(b"x")], 0)
    for call in (
        guarded.queues.create_queue(reader, "new", QueueSettings()),
        guarded.callers.set_contacts(reader, "alice", "A", "", ""),
        guarded.transactions.set_webhook(reader, "group", "https://example.com/", None),
        guarded.transactions.rollback(reader, half.id),
        guarded.callers.create_key(reader, "k", "alice", "member"),
    ):
        with pytest.raises(NotAuthorised):
            await call
    assert await guarded.queues.list_queues(reader, "", 10, None) == (["q"], None)


async def test_who_is_told_of_every_queue(guarded: Engine) -> None:
    for role in Role:
        names, _ = await guarded.queues.list_queues(await of_role(guarded, role), "", 10, None)
        assert names == ([] if role == Role.MEMBER else ["q"]), role
        assert guarded.queues.knows(await of_role(guarded, role, "someone"), "q") == (role != Role.MEMBER)
    with pytest.raises(QueueNotFound):
        await guarded.queues.get_queue(Principal("nobody"), "q")
    # Metrics name queues of all accounts, to those who are told of them.
    names = ["q", f"{'1' * 12}.q", f"{'2' * 12}.q"]
    for name in names[1:]:
        await guarded.queues.create_queue(BY, name, QueueSettings(partitions=1))
    told = {
        "of the service": (BY, names),
        "of another": (await of_role(guarded, Role.READER, f"{'1' * 12}.rita"), names[1:2]),
        "of a third": (await of_role(guarded, Role.READER, f"{'2' * 12}.rita"), names[2:]),
        "of the default account": (await of_role(guarded, Role.READER, "cleo"), names[:1]),
        "nobody": (Principal("nobody"), []),
    }
    for who, (by, known) in told.items():
        assert [name for name in names if guarded.queues.knows(by, name)] == known, who


async def test_a_role_is_changed_and_keys_of_before_have_one(guarded: Engine) -> None:
    _, secret = await guarded.callers.create_key(BY, "k", "rita", "operator")
    await guarded.callers.set_key(BY, "k", role="reader")
    assert guarded.callers.authenticate("k", secret).role == Role.READER
    async with guarded.catalog.change("key/old") as change:
        await change.write("key/old", KeyRecord("old", "secret", "root", True, 1))
    assert guarded.callers.authenticate("old", "secret") == Principal(
        "root", True, Role.ADMIN, "old", proof=hash("secret")
    )
    assert guarded.callers.is_admin(BY, "root")
    await guarded.callers.set_key(BY, "old", disabled=True)
    assert not guarded.callers.is_admin(BY, "root"), "by a key that does not count nobody is an administrator"


async def test_changes_of_a_key_reach_other_workers(guarded: Engine, make_engine: MakeEngine) -> None:
    other = await make_engine(auth="required", admin_key_secret=SECRET, default_partitions=1)
    _, first = await guarded.callers.create_key(BY, "k", "alice", "member")
    second, _ = await asyncio.gather(
        guarded.callers.rotate_key(BY, "k", 60_000), guarded.callers.set_key(BY, "k", role="operator")
    )
    await other.catalog.sync()
    assert opens(other, "k", first) and other.callers.authenticate("k", second).role == Role.OPERATOR
    await guarded.callers.set_key(BY, "k", disabled=True)
    await other.catalog.sync()
    assert not opens(other, "k", first) and not opens(other, "k", second)
