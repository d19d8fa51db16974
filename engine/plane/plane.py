"""Which queues the plane serves, and what it has to say. A queue is opened for the plane by its
first request, with the calls of its scripts as they are then, and closed before anything of it
changes: nothing that was leased for it is handed out from then on, and who waits goes the slow
path. `news` has what the plane tells.
"""

from __future__ import annotations

import collections
import itertools
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Final

from msgspec import Struct

from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.plane import library as lib
from engine.plane.library import COUNTS_BYTES, MAY_SEND, MAY_SEND_ATTRIBUTES, Library, until_back
from engine.plane.link import Link
from engine.plane.service import PAUSE_S, service
from engine.plane.whys import CHANGED, KEY_ENDS, OFF, VERBS, ends_ms, of_all, of_queue, of_settings, of_tag
from engine.receive.returns import REST_MS
from engine.rules.queue import Queue
from engine.rules.rights import Targets, WaitBound
from engine.settings import EngineSettings
from engine.shapes import Principal
from engine.window.window import AHEAD_S, MOVER_LEASE_MS
from runtime.clock import now_ms
from runtime.signals import Signal
from schemas.records import TagRecord
from schemas.vocabulary import FAR_DELAY_MS, Verb
from state.redis.calls import Templates
from state.redis.connection import Connection

logger = logging.getLogger(__name__)

# A queue that the plane has closed by itself, for its scripts refused it, is not opened again for
# so long.
REST_S: Final = 5.0
# A receive waits for so long at most, so a route ends so much before the key that it stands on.
LONGEST_WAIT_MS: Final = 60_000
# What was leased of a queue that was closed may come back for so long.
KEEP_S: Final = 120.0
# How often at most the plane is asked at which queues somebody waits.
ASK_S: Final = 0.02
# What is on its way back is waited for so long: by a receive, and by who stops.
BACK_S: Final = 1.0
STOP_S: Final = 2.0
# A queue that has served no request for so long is closed: the longest wait is shorter.
IDLE_S: Final = 300.0


class Opened(Struct, frozen=True):
    """A queue as it was when it was opened, by the tags' numbers."""

    number: int
    queue: Queue
    tags: dict[int, TagRecord]
    generation: int


class Plane:
    """The plane of this worker, or none: then each call is done at once. `visible` tells what may
    be receivable: incarnation, partition, since when (ms).
    """

    def __init__(
        self,
        settings: EngineSettings,
        connection: Connection,
        catalog: Catalog,
        targets: Targets,
        templates: Templates,
        wakes_as: Callable[[], str | None],
        kafka: Callable[[], dict[str, str]],
    ) -> None:
        """`wakes_as`: the name of this worker in wake-ups of others, None = there are none."""
        self._wakes_as = wakes_as
        self._kafka = kafka
        self._settings = settings
        self._connection = connection
        self._catalog = catalog
        self._targets = targets
        self._templates = templates
        self._library: Library | None = None
        self._numbers = itertools.count(1)
        self._open: dict[int, Opened] = {}
        self._used: dict[int, float] = {}
        self._closed: dict[int, tuple[Opened, float]] = {}
        self._of: dict[str, int] = {}
        self._held: collections.Counter[str] = collections.Counter()
        self._watched: collections.Counter[str] = collections.Counter()
        self._rests: dict[str, float] = {}
        self.link = Link(connection)
        self._waiting: frozenset[int] = frozenset()
        self._asked_at = 0.0
        self._calls = 0
        self.started: Signal[[Library]] = Signal()
        self.stopping: Signal[[]] = Signal()
        self.visible: Signal[[str, int, int]] = Signal()
        self._refusal = of_settings(settings)
        self.why = self._refusal or "the library does not serve HTTP"
        catalog.held.connect(self._note_held)
        catalog.changing.connect(self._note_change)
        catalog.rights_changed.connect(lambda incarnation: self.forget())

    @property
    def is_on(self) -> bool:
        """Whether a plane serves what is plain."""
        return self._library is not None

    def may_serve(self, queue: Queue) -> bool:
        """Whether a plane serves verbs of a queue."""
        return self.is_on and len(of_queue(queue)) < len(VERBS)

    @property
    def state(self) -> str:
        """Returns what /health says: on, or off and why."""
        if self._library is None:
            return f"off: {self.why}"
        return "on" if self.link.is_up else "off: it is not connected to the Redis in use"

    def start(self, library: Library, metrics_s: Sequence[float], line_every: int = 0) -> None:
        """Has the library serve, if it can; `metrics_s`, `line_every`: see `service`."""
        if self._refusal:
            return
        try:
            parts = service(self._settings, self._connection.options(), self._kafka(), metrics_s, line_every)
            library.start_plane(parts)
        except (OSError, EngineError) as error:
            self.why = str(error)
            logger.warning("action=plane on=no reason=%s", error)
            return
        self._library, self.why = library, ""
        self.link.start(library)
        self.started(library)

    async def stop(self) -> None:
        """Ends all waits with nothing, and serves no more. Returns when what was leased is back,
        within STOP_S.
        """
        self.stopping()
        if self._library is not None:
            self._library.tell(lib.STOP, 0)
            self.close_all()
            self.link.stop()
            library, self._library, self.why = self._library, None, "the worker stops"
            await until_back(library, lambda returning: not returning, STOP_S)

    # What the plane is told.

    def route(
        self,
        by: Principal,
        queue: Queue,
        tag: TagRecord,
        lane: int,
        refused: Mapping[Verb, str],
        *,
        some: int | None,
        most_bytes: int,
        most_leased_ms: int,
        bounds: Sequence[WaitBound],
        counts_bytes: bool,
    ) -> dict[Verb, str]:
        """Has the plane serve requests of a lane, but those of verbs that are `refused`. Returns
        which verbs it does not serve, and why. `some`: messages of a receive that does not say,
        None = as many as the queue lets; `most_bytes`: of all messages of a send; `most_leased_ms`:
        of the leases of a delivery that are extended, 0 = any; `counts_bytes`: sends wait for what
        `Allowances` allow.
        """
        if self._library is None:
            return of_all(OFF)
        if not self._is_steady(queue, tag):
            return of_all(CHANGED)
        if (valid_ms := self._valid_ms(by)) < 0:
            return of_all(KEY_ENDS)
        whys = {**refused, **of_tag(queue, tag.id)}
        may = sum(bit for bit, verb in VERBS.items() if verb not in whys)
        if not may:
            return whys
        number = self._of.get(queue.incarnation)
        if number is None:
            number = self._opened(queue)
        may |= MAY_SEND_ATTRIBUTES if may & MAY_SEND and queue.tag_mask is not None else 0
        may |= COUNTS_BYTES if counts_bytes else 0
        most = queue.record.max_receive_messages
        waits = [[whose.encode(), count] for whose, count in bounds]
        wait_ms = queue.record.receive_wait_ms
        bounds_ms = [most_leased_ms, queue.record.delay_ms, min(queue.record.max_delay_ms, FAR_DELAY_MS - 1)]
        sizes = [queue.record.max_message_bytes, most_bytes]
        told = [lane, number, tag.id, may, most if some is None else some, most, wait_ms, valid_ms, waits]
        self._library.tell(lib.ROUTE, [*told, by.id.encode(), *sizes, *bounds_ms])
        return whys

    def retell(self, lanes: Sequence[int]) -> None:
        """Has the library tell of these lanes again when somebody asks: the plane does not serve
        them yet, and may then.
        """
        if self._library is not None:
            self._library.tell(lib.RETELL, list(lanes))

    def _is_steady(self, queue: Queue, tag: TagRecord) -> bool:
        """Whether a queue is as it was looked up, and nobody changes it."""
        if self._catalog.by_incarnation.get(queue.incarnation) is not queue or tag.id not in queue.tag_ids:
            return False
        return queue.name not in self._held and self._rests.get(queue.incarnation, 0.0) <= monotonic()

    def _valid_ms(self, by: Principal) -> int:
        """How long (ms) what `by` may do holds if nothing changes; 0 = for ever, -1 = not for long
        enough.
        """
        key = self._catalog.keys.get(by.key_id)
        if key is None:
            return 0
        until_ms = ends_ms(key, by.proof)
        if not until_ms:
            return 0
        left_ms = until_ms - now_ms() - LONGEST_WAIT_MS
        return left_ms if left_ms > 0 else -1

    def _opened(self, queue: Queue) -> int:
        assert self._library is not None
        number = next(self._numbers)
        name = self._wakes_as()
        alone = name is None
        mask = queue.plain_mask() if queue.tag_mask is None else queue.tag_mask
        generation = self._catalog.generation
        loads = [self._templates.load(unit, generation, queue.tag_ids, name) for unit in queue.units]
        calls = [self._tag(queue, tag, alone=alone) for tag in queue.tags]
        told = [number, bytes.fromhex(queue.incarnation), calls, queue.topic.encode()]
        told += [mask.encode(), int(alone), secrets.randbelow(len(loads)), loads, int(queue.record.durable_acks)]
        self._library.tell(lib.OPEN, told)
        self._open[number] = Opened(number, queue, {tag.id: tag for tag in queue.tags}, generation)
        self._used[number] = monotonic()
        self._of[queue.incarnation] = number
        if self._watched[queue.incarnation]:
            self._library.tell(lib.WATCH, [number, 1])
        return number

    def _tag(self, queue: Queue, tag: TagRecord, *, alone: bool) -> list[Any]:
        record, bounds = queue.record, queue.bounds[tag.id]
        most = bounds.dead_letter if bounds.dead_letter and self._targets.most_receives(queue, tag.id) else 0
        calls = [
            self._templates.of(
                unit, self._catalog.generation, tag.id, queue_lease_ms=record.lease_ms, max_receive_count=most,
                retention_ms=queue.expires_ms, move_ms=MOVER_LEASE_MS, rest_ms=REST_MS,
            )
            for unit in queue.units
        ]  # fmt: skip
        may_hold = alone and not bounds.dead_letter and not bounds.park
        return [tag.id, int(may_hold), record.lease_ms, record.max_message_bytes, calls]

    def close(self, queue: Queue) -> None:
        """When this returns the plane hands out nothing of a queue that it has leased before."""
        number = self._of.get(queue.incarnation)
        if number is not None:
            self._close(number)

    def _close(self, number: int) -> None:
        opened = self._open.pop(number)
        del self._of[opened.queue.incarnation], self._used[number]
        self._keep_closed(opened)
        if self._library is not None:
            self._library.tell(lib.CLOSE, number)

    def _note_held(self, name: str, held: bool) -> None:
        """Somebody begins to change what has this name, or has ended: until then it is closed."""
        self._held[name] += 1 if held else -1
        if not self._held[name]:
            del self._held[name]
        elif (queue := self._catalog.queues.get(name)) is not None:
            self.close(queue)

    def close_all(self) -> None:
        """As `close`, of each queue: what all of them were opened with has changed."""
        for number in list(self._open):
            self._close(number)

    def forget(self) -> None:
        """Rights or quotas have changed: each request is looked up again."""
        if self._library is not None:
            self._library.forget()

    def _note_change(self, kind: str, name: str) -> None:
        """A control record is about to count."""
        if kind in ("key", "user"):
            self.forget()
        elif kind == "generation":
            self.close_all()
        elif kind == "queue":
            # Where messages die may depend on any queue.
            for number, opened in list(self._open.items()):
                if opened.queue.name == name or opened.queue.dead_letter_queues:
                    self._close(number)

    def woken(self, incarnation: str, partition: int, head_ms: int = 0) -> None:
        """As `WaitLists.woken`."""
        number = self._of.get(incarnation)
        if number is not None and self._library is not None:
            some = range(self._open[number].queue.record.partitions) if partition < 0 else (partition,)
            for one in some:
                self._library.tell(lib.WOKEN, [number, one, head_ms])

    def watch(self, incarnation: str, waiting: int) -> None:
        """So many more (or fewer) receives wait for a queue in Python: the plane wakes them."""
        before, self._watched[incarnation] = self._watched[incarnation], self._watched[incarnation] + waiting
        turned = bool(before) != bool(self._watched[incarnation])
        if turned and self._library is not None and (number := self._of.get(incarnation)):
            self._library.tell(lib.WATCH, [number, int(not before)])
        if not self._watched[incarnation]:
            del self._watched[incarnation]
        if waiting > 0:
            self._hear()  # from now on the plane tells by itself

    async def empty(self, incarnation: str, tag: int, pause_s: float = PAUSE_S) -> None:
        """Gives back what was leased ahead of receives, and leases nothing ahead for a while.
        Returns when it is back, within BACK_S: who asks Redis then sees all that nobody has, and
        has heard where it is.
        """
        number = self._of.get(incarnation)
        if number is not None and self._library is not None:
            self._library.tell(lib.EMPTY, [number, tag, round(pause_s * 1000)])
            await until_back(self._library, lambda returning: [number, tag] not in returning, BACK_S)
        self._hear()

    def _hear(self) -> None:
        """Takes in what became receivable while nobody here waited for it: a receive takes what it
        knows of partitions for true.
        """
        for number, partition, head_ms in self.ask(lib.UNHEARD):
            if (opened := self.opened(number)) is not None:
                self.visible(opened.queue.incarnation, partition, head_ms)

    async def show(self, incarnation: str, tag: int) -> None:
        """As `empty`, for who counts: what nobody has is shown as receivable."""
        await self.empty(incarnation, tag, AHEAD_S)

    def note_use(self, number: int) -> None:
        """Notes that requests of a queue were served."""
        if number in self._used:
            self._used[number] = monotonic()

    def close_idle(self) -> None:
        """Closes each queue that nobody has used for IDLE_S; its next request opens it again."""
        over = monotonic() - IDLE_S
        for number in [number for number, used in self._used.items() if used < over]:
            self._close(number)

    def tell(self, what: int, told: list[Any]) -> None:
        """Tells the plane something, if there is one."""
        if self._library is not None:
            self._library.tell(what, told)

    def ask(self, what: int) -> list[Any]:
        """Asks the plane something; nothing, if there is none."""
        return [] if self._library is None else self._library.ask(what)

    def waits(self, queue: Queue) -> bool:
        """Whether somebody waits here for messages of a queue."""
        number = self._of.get(queue.incarnation)
        if number is None or self._library is None:
            return False
        if monotonic() - self._asked_at > ASK_S:
            self._asked_at, self._waiting = monotonic(), frozenset(self._library.ask(lib.WAITING))
        return number in self._waiting

    def waiting(self) -> tuple[int, int]:
        """Returns how many receives wait here, and how many of the caller who has the most."""
        every, most = self.ask(lib.WAITS) or (0, 0)
        return every, most

    def calls(self) -> int:
        """Returns how many calls of scripts the plane has made."""
        self._calls = next(iter(self.ask(lib.CALLS)), self._calls)
        return self._calls

    def rest(self, opened: Opened) -> None:
        """The plane has closed a queue by itself."""
        self._rests[opened.queue.incarnation] = monotonic() + REST_S
        self._close(opened.number)  # its lanes are told again

    def opened(self, number: int) -> Opened | None:
        """The queue that has this number, also if it was closed in the last minute."""
        return self._open.get(number) or self._closed.get(number, (None, 0.0))[0]

    def is_open(self, number: int) -> bool:
        """Whether the plane serves the queue of this number."""
        return number in self._open

    def _keep_closed(self, opened: Opened) -> None:
        """What was leased of it may have to be given back still."""
        now = monotonic()
        self._closed[opened.number] = opened, now + KEEP_S
        while (first := next(iter(self._closed))) != opened.number and self._closed[first][1] < now:
            del self._closed[first]
