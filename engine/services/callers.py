"""Who asks, and what they may: the verbs of keys, grants and users.

Each method passes the authoriser before anything else.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, NotAuthenticated
from engine.gate import Gate, bounded
from engine.queues.callers.access import Access
from engine.queues.callers.audited import AuditPage, AuditQuery
from engine.queues.parts import CallerParts
from engine.rules.grants import OF_NO_QUEUE, OF_TAG, QueueRights, level_of, levels_of
from engine.rules.limits import check_asked
from engine.rules.rights import no_queue
from engine.services.accounts import audit_for, key_for, user_for
from engine.shapes import KeyInfo, Principal, UserInfo, UserUse
from runtime.asked import look, note, note_claim
from runtime.deadline import CHANGE_S, MESSAGES_S
from schemas.accounts import account_of, full, full_principal, short_principal
from schemas.vocabulary import Level, Role, Verb


class CallerService:
    """Callers: authenticates them, manages their keys, rights and bounds, shows what they asked."""

    def __init__(self, gate: Gate, catalog: Catalog, access: Access, callers: CallerParts) -> None:
        self._gate = gate
        self._catalog = catalog
        self._access = access
        self._keys = callers.keys
        self._grants = callers.grants
        self._quotas = callers.quotas
        self._users = callers.users
        self._audited = callers.audited
        # The accounts that there are beside the default one, of now. Each request looks.
        self.accounts = access.accounts

    # `at`: the address from which somebody asks, "" = it is not counted how often they are wrong.

    def authenticate(self, key_id: str | None, secret: str | None, at: str = "") -> Principal:
        """Raises NotAuthenticated, TooManyAttempts."""
        if not at or not key_id:
            return self._access.authenticate(key_id, secret)
        return self._proved(at, key_id, lambda: self._access.authenticate(key_id, secret))

    def authenticate_signed(self, key_id: str, fits: Callable[[str], bool], at: str = "") -> Principal:
        """Raises NotAuthenticated, TooManyAttempts; `fits` says whether a secret has made the
        signature of a request.
        """
        return self._proved(at, key_id, lambda: self._access.authenticate_signed(key_id, fits))

    def signing_key(self, key_id: str, derive: Callable[[str], bytes], at: str) -> tuple[Principal, bytes, int] | None:
        """Who has a key, what `derive` makes of its newest secret, and for how many ms at most that
        counts; None = the key is not there or does not count, or nobody has proved it from `at`
        lately. For who checks signatures many at a time, from there alone, and asks again when
        `key_changes` has changed: that a key is asked for is no use of it, and wrong ones are told
        by `authenticate_signed`.
        """
        if not self._access.guesses.is_known(at, key_id):
            return None
        return self._access.signing_key(key_id, derive)

    @property
    def key_changes(self) -> int:
        """How many changes of keys this worker has heard of."""
        return self._catalog.key_changes

    def check_key(self, key_id: str, at: str = "") -> None:
        """Raises NotAuthenticated for a key that is not there, TooManyAttempts. For signatures of
        bodies: who can't have signed need not send theirs.
        """
        note_claim(key_id)
        if at:
            self._access.guesses.check(at, key_id, self._access.has_key)
        if not self._access.has_key(key_id):
            if at:
                self._access.guesses.failed(at, key_id, exists=False)
            raise NotAuthenticated(f"there is no key {key_id!r}", field="key_id", given=key_id)

    def _proved(self, at: str, key_id: str, look: Callable[[], Principal]) -> Principal:
        if not at:
            return look()
        note_claim(key_id)
        self._access.guesses.check(at, key_id, self._access.has_key)
        try:
            by = look()
        except NotAuthenticated:
            self._access.guesses.failed(at, key_id, exists=self._access.has_key(key_id))
            raise
        self._access.guesses.fitted(at, key_id)
        return by

    @bounded(CHANGE_S)
    async def create_key(
        self, by: Principal, key_id: str, principal: str, role: str, expires_at_ms: int = 0
    ) -> tuple[str, str]:
        """A key for a principal; its id and secret. `role` is a word of Role, `expires_at_ms` 0 =
        never. The id that an administrator of an account gives has the account before it, so that
        it is neither taken from others nor tells of theirs.
        """
        key_id = full(by.account, key_id)
        note(by.id, by.key_id, Verb.MANAGE_KEYS, subject=key_id)
        self._access.authorise(by, Verb.MANAGE_KEYS)
        principal = full(by.account, principal)
        self._access.check_account(by, principal)
        return await self._keys.create(key_id, principal, role, expires_at_ms)

    @bounded(CHANGE_S)
    async def set_key(
        self,
        by: Principal,
        key_id: str,
        role: str | None = None,
        expires_at_ms: int | None = None,
        disabled: bool | None = None,
    ) -> KeyInfo:
        """Changes what is named of a key."""
        key_id = self._authorise_key(by, key_id)
        return key_for(by.account, await self._keys.set(key_id, role, expires_at_ms, disabled))

    @bounded(CHANGE_S)
    async def rotate_key(self, by: Principal, key_id: str, grace_ms: int) -> str:
        """Gives a key another secret, and returns it; the one before counts for `grace_ms` more. A
        key may do that for itself, by its newest secret: who has found an old one may not lock its
        owner out.
        """
        note(by.id, by.key_id, Verb.MANAGE_KEYS, subject=key_id)
        if by.key_id != key_id or by.by_old_secret:
            key_id = self._authorise_key(by, key_id)
        return await self._keys.rotate(key_id, grace_ms)

    @bounded(CHANGE_S)
    async def delete_key(self, by: Principal, key_id: str) -> None:
        key_id = self._authorise_key(by, key_id)
        await self._keys.delete(key_id)

    @bounded(MESSAGES_S)
    @look
    async def list_keys(self, by: Principal) -> list[KeyInfo]:
        """The keys of the caller's account; the service's administrators: all."""
        self._access.authorise(by, Verb.MANAGE_KEYS)
        return [
            key_for(by.account, key)
            for key in await self._keys.list()
            if by.admin or account_of(key.principal) == by.account
        ]

    def _authorise_key(self, by: Principal, key_id: str) -> str:
        """The whole id of a key. Raises NotAuthorised, and for the key of another account
        KeyNotFound, as if there was none.
        """
        note(by.id, by.key_id, Verb.MANAGE_KEYS, subject=key_id)
        self._access.authorise(by, Verb.MANAGE_KEYS)
        return self._access.key_of(by, key_id)

    # Levels of permission: on a queue, or with `tag` on messages of that tag alone.

    @bounded(MESSAGES_S)
    async def list_grants(self, by: Principal, queue: str, tag: str = "") -> dict[str, Level]:
        """The level of each principal that was given one; owner and administrators have every
        right without. Raises TagNotFound.
        """
        await self._gate.queue(by, Verb.LIST_GRANTS, queue, tag)
        await self._gate.sync()
        found = await self._gate.queue(by, Verb.LIST_GRANTS, queue, tag)
        levels = levels_of(found.record.grants, found.tag(tag).name if tag else "")
        return {short_principal(by.account, who): level for who, level in levels.items()}

    @bounded(MESSAGES_S)
    async def get_grant(self, by: Principal, queue: str, principal: str) -> Level:
        """The level of a principal; everybody may ask for their own, unless they have none."""
        principal, name = full_principal(by.account, principal), full(by.account, queue)
        await self._gate.sync()
        found = (
            await self._gate.queue(by, Verb.LIST_GRANTS, queue)
            if principal != by.id
            else await self._catalog.queue(name)
        )
        if not self._access.knows(by, found):
            raise no_queue(name)
        everything = found.record.owner == principal or (by.admin and by.id == principal)
        return Level.FULL_CONTROL if everything else level_of(found.record.grants, principal)

    @bounded(MESSAGES_S)
    async def rights(self, by: Principal) -> list[Verb]:
        """What the caller may do that is about no queue, so that a page need not offer what would
        be refused.
        """
        return [verb for verb in Verb if verb in OF_NO_QUEUE and self._access.may_alone(by, verb)]

    @bounded(MESSAGES_S)
    async def queue_rights(self, by: Principal, queue: str) -> QueueRights:
        """What the caller may do with a queue and under each of its tags. Raises QueueNotFound also
        for a queue with which they may do nothing.
        """
        name = full(by.account, queue)
        found = self._catalog.queues.get(name)
        if found is None or not self._access.knows(by, found):
            await self._gate.sync()
            found = self._catalog.queues.get(name)
        if found is None or not self._access.knows(by, found):
            raise no_queue(name)
        whole = [verb for verb in Verb if verb not in OF_NO_QUEUE and self._access.may(by, verb, found)]
        tags = {
            tag.name: [verb for verb in Verb if verb in OF_TAG and self._access.may(by, verb, found, tag.name)]
            for tag in found.tags
        }
        return QueueRights(whole, tags)

    @bounded(CHANGE_S)
    async def grant(self, by: Principal, queue: str, principal: str, level: str, tag: str = "") -> None:
        """Gives a principal a level in place of the one it had; NONE takes it away. Raises
        TagNotFound.
        """
        principal = full_principal(by.account, principal)
        note(by.id, by.key_id, Verb.GRANT, full(by.account, queue), tag, subject=principal)
        await self._grants.set((await self._gate.queue(by, Verb.GRANT, queue, tag)).name, principal, level, tag)

    @bounded(MESSAGES_S)
    @look
    async def get_user(self, by: Principal, name: str) -> UserInfo:
        """Contacts and quotas of a user, with all that was answered before at any worker; everybody
        may ask for their own.
        """
        name = self._user(by, name)
        await self._gate.sync()
        return user_for(by.account, self._users.get(name))

    @bounded(MESSAGES_S)
    @look
    async def get_user_use(self, by: Principal, name: str) -> UserUse:
        """What a user has of what they may have; everybody may ask for their own."""
        name = self._user(by, name)
        return self._users.use(name, await self._quotas.bytes_today(name))

    @bounded(CHANGE_S)
    async def set_contacts(
        self, by: Principal, name: str, display_name: str, email: str, phone: str, webhook: str | None = None
    ) -> UserInfo:
        """Notes how to reach a user; everybody may do so for themselves. A webhook of None stays
        as it is.
        """
        note(by.id, by.key_id, Verb.MANAGE_USERS, subject=name)
        name = self._user(by, name)
        if by.role is Role.READER:
            self._access.authorise(by, Verb.MANAGE_USERS)
        also = {} if webhook is None else {"webhook": webhook}
        return user_for(
            by.account, await self._users.set(name, display_name=display_name, email=email, phone=phone, **also)
        )

    @bounded(CHANGE_S)
    async def set_user_quota(
        self, by: Principal, name: str, read_qps: int, write_qps: int, queues: int, **more: int
    ) -> UserInfo:
        """Bounds what a user may use, or an account as a whole; 0 = no bound. `more`: partitions,
        daily_bytes, waits; what is not named stays as it was. An account's bounds are the service's
        to set.
        """
        note(by.id, by.key_id, Verb.MANAGE_USERS, subject=name)
        self._access.authorise(by, Verb.MANAGE_USERS)
        name = full_principal(by.account, name)
        self._access.check_account(by, name)
        return user_for(
            by.account, await self._users.set(name, read_qps=read_qps, write_qps=write_qps, queues=queues, **more)
        )

    @bounded(MESSAGES_S)
    async def list_audit(
        self,
        by: Principal,
        limit: int,
        cursor: str | None = None,
        *,
        from_ms: int | None = None,
        to_ms: int | None = None,
        principal: str = "",
        queue: str = "",
        verb: str = "",
    ) -> AuditPage:
        """What was asked and what came of it, newest first: to administrators of the service all,
        to those of an account what concerns that. The others: as of AuditQuery. Raises
        InvalidValue.
        """
        self._access.authorise(by, Verb.LIST_AUDIT)
        check_asked("limit", limit)
        check_asked("from", from_ms)
        check_asked("to", to_ms)
        if verb and verb not in set(Verb):
            raise InvalidValue(
                "verb must be one of the verbs of the engine", field="verb", limit=list(Verb), given=verb[:100]
            )
        wanted = AuditQuery(
            from_ms=from_ms,
            to_ms=to_ms,
            principal=full_principal(by.account, principal) if principal else "",
            queue=full(by.account, queue) if queue else "",
            verb=verb,
            account=None if by.admin else by.account,
        )
        page = await self._audited.page(wanted, limit, cursor)
        return structs.replace(page, records=[audit_for(by.account, record) for record in page.records])

    def is_admin(self, by: Principal, name: str) -> bool:
        """Whether a principal may do everything; everybody may ask about themselves."""
        return self._access.is_admin(self._user(by, name))

    def _user(self, by: Principal, name: str) -> str:
        """The full name of a user of whom `by` may ask: themselves, their account, or somebody of
        theirs who may manage users. Raises NotAuthorised.
        """
        name = full_principal(by.account, name)
        if name not in (by.id, by.account):
            self._access.authorise(by, Verb.MANAGE_USERS)
            self._access.check_account(by, name)
        return name
