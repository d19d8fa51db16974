"""Names over accounts: what one account has neither keeps another from a name nor is seen by it;
and what the reader of one tag sees by an id.
"""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, KeyNotFound, MessageNotFound, NotAuthenticated, NotAuthorised
from engine.shapes import Principal, SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import Grant, QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY

A, B, C = "111122223333", "444455556666", "777788889999"
ADMIN, SECRET = "the secret of the admin", "a secret of this service"


@pytest.fixture
async def guarded(make_engine: MakeEngine) -> Engine:
    return await make_engine(auth="required", admin_key_secret=ADMIN, secret=SECRET)


async def caller(engine: Engine, key_id: str, principal: str, role: str) -> Principal:
    whole, secret = await engine.callers.create_key(BY, key_id, principal, role)
    return engine.callers.authenticate(whole, secret)


async def test_no_queue_of_others_keeps_an_account_from_a_name_or_tells_of_it(guarded: Engine) -> None:
    alice, carol = (
        await caller(guarded, "alice", f"{A}.alice", "admin"),
        await caller(guarded, "carol", "carol", "member"),
    )
    like_hers = f"{A}_orders"
    await guarded.queues.create_queue(carol, "mine", QueueSettings(partitions=1))

    async def told() -> list[str]:
        found = []
        for by in (carol, BY):
            with pytest.raises(InvalidValue) as refused:
                await guarded.queues.create_queue(by, like_hers, QueueSettings(partitions=1))
            found.append(str(refused.value))
        with pytest.raises(InvalidValue) as refused:
            await guarded.queues.copy_queue(carol, "mine", like_hers)
        return [*found, str(refused.value)]

    before = await told()
    await guarded.queues.create_queue(alice, "orders", QueueSettings(partitions=1))
    assert await told() == before
    # In an account a name may begin so: its own queues have the account before it.
    await guarded.queues.create_queue(alice, f"{B}_orders", QueueSettings(partitions=1))


async def test_nobody_takes_names_of_an_account_that_is_not_there_yet(guarded: Engine) -> None:
    alice, carol = (
        await caller(guarded, "alice", f"{A}.alice", "admin"),
        await caller(guarded, "carol", "carol", "member"),
    )
    namesake = await caller(guarded, B, B, "member")
    hers = f"{C}.orders"
    await guarded.queues.create_queue(carol, "mine", QueueSettings(partitions=1))

    async def told() -> list[str]:
        found = []
        for by in (alice, carol, namesake):
            with pytest.raises(NotAuthorised) as refused:
                await guarded.queues.create_queue(by, hers, QueueSettings(partitions=1))
            found.append(str(refused.value))
        with pytest.raises(NotAuthorised) as refused:
            await guarded.queues.copy_queue(carol, "mine", hers)
        return [*found, str(refused.value)]

    before = await told()
    dave = await caller(guarded, "dave", f"{C}.dave", "member")
    assert await told() == before, "who is refused hears whether an account is there"
    info, made = await guarded.queues.create_queue(dave, "orders", QueueSettings(partitions=1))
    assert made and info.owner == "dave"
    # A principal that is called as an account is, and administrators.
    await guarded.queues.create_queue(namesake, f"{B}.orders", QueueSettings(partitions=1))
    await guarded.queues.create_queue(BY, f"{C}.more", QueueSettings(partitions=1))
    await guarded.queues.create_queue(carol, "000000000000.orders", QueueSettings(partitions=1))


async def test_each_account_has_key_ids_of_its_own(guarded: Engine) -> None:
    alice, bob = (
        await caller(guarded, "alice", f"{A}.alice", "admin"),
        await caller(guarded, "bob", f"{B}.bob", "admin"),
    )
    made = {by.account: await guarded.callers.create_key(by, "shop", "shop", "member") for by in (BY, alice, bob)}
    assert [key_id for key_id, _ in made.values()] == ["shop", f"{A}.shop", f"{B}.shop"]
    assert {guarded.callers.authenticate(*key).id for key in made.values()} == {"shop", f"{A}.shop", f"{B}.shop"}
    for taken in (alice, bob):
        with pytest.raises(InvalidValue, match="taken"):
            await guarded.callers.create_key(taken, "shop", "shop", "member")
    # By the short id and by the whole one; never another's.
    assert (await guarded.callers.set_key(alice, "shop", disabled=True)).key_id == f"{A}.shop"
    assert (await guarded.callers.set_key(alice, f"{A}.shop", disabled=False)).key_id == f"{A}.shop"
    for named in (f"{A}.shop", "carol", "alice", f"{A}.none"):
        with pytest.raises(KeyNotFound):
            await guarded.callers.rotate_key(bob, named, 0)
    secret = await guarded.callers.rotate_key(bob, "shop", 0)
    assert guarded.callers.authenticate(f"{B}.shop", secret).id == f"{B}.shop"
    await guarded.callers.delete_key(alice, "shop")
    with pytest.raises(NotAuthenticated):
        guarded.callers.authenticate(*made[A])
    assert guarded.callers.authenticate(*made[""]).id == "shop"
    # A key that the service's administrator named for an account is the account's all the same.
    await guarded.callers.set_key(alice, "alice", disabled=False)
    assert {key.key_id for key in await guarded.callers.list_keys(bob)} == {"bob", f"{B}.shop"}


async def test_the_reader_of_a_tag_sees_by_an_id_what_its_filter_takes(guarded: Engine) -> None:
    owner, reader = (
        await caller(guarded, "owner", "owner", "member"),
        await caller(guarded, "reader", "reader", "member"),
    )
    await guarded.queues.create_queue(owner, "q", QueueSettings(partitions=1))
    await guarded.queues.create_tag(owner, "q", "urgent", 0, Filter([Condition("kind", "string", b"urgent")]), {})

    def entry(kind: str) -> SendEntry:
        return SendEntry(kind.encode(), {"kind": Attribute("string", kind.encode())})

    urgent, other = await guarded.messages.send(owner, "q", [entry("urgent"), entry("other")])
    grant = Grant(True, ["reader"], ["peek"], tags=["urgent"])
    await guarded.queues.set_queue(owner, "q", QueueSettings(grants=[grant]))
    assert (await guarded.messages.peek(reader, "q", urgent.id, "urgent")).message.body == b"urgent"
    with pytest.raises(MessageNotFound) as refused:
        await guarded.messages.peek(reader, "q", other.id, "urgent")
    with pytest.raises(MessageNotFound) as none:
        await guarded.messages.peek(reader, "q", other.id[:-1] + ("0" if other.id[-1] != "0" else "1"), "urgent")
    assert other.id in str(refused.value) and refused.value.code == none.value.code
    # Who may see the whole queue sees what the tag does not want, as before.
    assert (await guarded.messages.peek(owner, "q", other.id, "urgent")).message.body == b"other"
