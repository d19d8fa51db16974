"""One request of a RocketMQ client: who asks, what the method answers, how a failure is said.

A failure of a method is a Status in its answer, and gRPC's own status stays OK; only the telemetry
stream ends with one of gRPC's (reference/rocketmq.md, part 4).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, Final, NoReturn, TypeVar

from google.protobuf.message import DecodeError

from engine.errors import EngineError, NotAuthenticated, word_of
from engine.shapes import Check, Principal
from facade.dialect import Audit, Spans
from facade.dialects.rocketmq import signature
from facade.dialects.rocketmq.actions import ACTIONS, RECEIVE, TELEMETRY, Action
from facade.dialects.rocketmq.clients import telemetry
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.clients.producers import Producers
from facade.dialects.rocketmq.clients.renewals import Renewals
from facade.dialects.rocketmq.http2.framing import CallEnded, GrpcStatus, end
from facade.dialects.rocketmq.http2.rpc import Gone, Rpc
from facade.dialects.rocketmq.messages.receive import Received, receive_message
from facade.dialects.rocketmq.messages.transactions import question
from facade.dialects.rocketmq.queues.call import Call, Common
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, status_of
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from facade.http.metrics import Metrics
from schemas.vocabulary import CLIENT_GONE, OK

CLIENT_ID: Final = "x-mq-client-id"
MOST_STREAMS: Final = 10_000  # telemetry streams of a worker, one for each client
GONE: Final = 499  # the code of a request whose client has gone, in the metrics
_CLIENT_ID_CHARACTERS: Final = 255
_FAR_S: Final = 86_400.0
_VERBS: Final = {name: f"rocketmq.{name}" for name in (*ACTIONS, RECEIVE, TELEMETRY)}

log = logging.getLogger("leaseway.rocketmq")
_Answer = TypeVar("_Answer")


class Exchange:
    """Answers the requests of one worker. Any number of tasks may ask at once."""

    def __init__(self, common: Common, metrics: Metrics, spans: Spans | None = None) -> None:
        self._common = common
        self._audit: Audit = common.engine.audit
        self._metrics = metrics
        self._spans = spans
        self.clients = Clients(Renewals(common.engine), Producers(common.engine))
        self._is_open = common.engine.settings.auth == "open"
        self._zones = signature.zones_of(common.settings.rocketmq_zones)
        self._waiting: set[asyncio.Task[Any]] = set()
        self._streams = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends what waits: receives are answered with nothing, telemetry streams end."""
        self._stopping.set()
        for task in self._waiting:
            task.cancel()

    async def unary(self, name: str, action: Action, rpc: Rpc) -> bytes:
        """The answer to a request of one answer, encoded."""
        self._trace(rpc)
        started, asked = perf_counter(), self._audit.begin(rpc.peer)
        try:
            answer = await action.run(await self._call(action.request, rpc), self.clients)
        except (asyncio.CancelledError, CallEnded):
            self._observe(name, GONE, started, asked, CLIENT_GONE)
            raise
        except Exception as error:
            answer, outcome = action.response(status=self._failed(name, error)), word_of(error)
            await self._audited(asked, name, answer.status.code, error)
        else:
            outcome = OK
            await self._audited(asked, name, answer.status.code, None)
        self._observe(name, answer.status.code, started, asked, outcome)
        encoded: bytes = answer.SerializeToString()
        return encoded

    async def receive(self, rpc: Rpc) -> None:
        """Writes the answer of ReceiveMessage. What it has leased and can't say is given back."""
        self._trace(rpc)
        started, asked = perf_counter(), self._audit.begin(rpc.peer)
        self._metrics.receive_begins()
        try:
            try:
                call = await self._call(pb.ReceiveMessageRequest, rpc)
                received = await self._until_stop(receive_message(call, self.clients), partial(self._give_back, call))
            except CallEnded:
                raise
            except Exception as error:
                status = self._failed(RECEIVE, error)
                await self._audited(asked, RECEIVE, status.code, error)
                self._observe(RECEIVE, status.code, started, asked, word_of(error))
                await rpc.write(pb.ReceiveMessageResponse(status=status).SerializeToString())
                return
            received = received or Received([], "", fifo=False, lease_ms=0)
            await self._audited(asked, RECEIVE, Code.OK, None)
            await self._say(received, call, rpc)
            self._observe(RECEIVE, Code.OK if received.deliveries else Code.MESSAGE_NOT_FOUND, started, asked)
        except (asyncio.CancelledError, Gone, CallEnded):
            self._observe(RECEIVE, GONE, started, asked, CLIENT_GONE)
            raise
        finally:
            self._metrics.receive_ends()

    async def _say(self, received: Received, call: Call, rpc: Rpc) -> None:
        said = 0  # of the deliveries
        try:
            for response in received.responses():
                await rpc.write(response.SerializeToString())
                said += response.HasField("message")
        except BaseException:
            self._give_back(call, received, said)
            raise

    def _give_back(self, call: Call, received: Received, said: int = 0) -> None:
        """Gives back what no answer has carried: all but the first `said`."""
        unsaid = received.deliveries[said:]
        if unsaid:
            self.clients.renewals.forget(call.by, call.client_id, [delivery.handle for delivery in unsaid])
            self._common.engine.messages.undelivered(unsaid)

    async def telemetry(self, rpc: Rpc) -> None:
        """Serves the telemetry stream of a client until it or this worker ends it. The client is
        asked on it about transactions.
        """
        if self._streams >= MOST_STREAMS:
            end(GrpcStatus.RESOURCE_EXHAUSTED, f"a worker has {MOST_STREAMS} telemetry streams at most")
        asked = self._audit.begin(rpc.peer)
        try:
            by, client_id = self._caller(rpc)
        except (EngineError, RocketError) as error:
            await self._refuse(error, perf_counter(), asked)
        writing = asyncio.Lock()  # one message at a time

        async def say(command: pb.TelemetryCommand) -> None:
            async with writing:
                await rpc.write(command.SerializeToString())

        async def ask(topic: str, check: Check) -> None:
            await say(question(topic, check, self._common.engine.settings.secret))

        self._streams += 1
        stream = self.clients.producers.opened(by, client_id, ask)
        try:
            while not self._stopping.is_set():
                body = await self._until_stop(rpc.message(first=False))
                if body is None:
                    return
                await self._told(body, rpc, say)
        finally:
            self._streams -= 1
            await self.clients.producers.closed(by, client_id, stream)

    async def _told(self, body: bytes, rpc: Rpc, say: Callable[[pb.TelemetryCommand], Awaitable[None]]) -> None:
        started, asked = perf_counter(), self._audit.begin(rpc.peer)
        try:
            by, client_id = self._caller(rpc, again=True)
            call = Call(by, _read(pb.TelemetryCommand, body), self._common, client_id)
            answer = await telemetry.answered(call, self.clients)
        except Exception as error:
            await self._refuse(error, started, asked)
        await self._audited(asked, TELEMETRY, Code.OK, None)
        self._observe(TELEMETRY, answer.status.code if answer is not None else Code.OK, started, asked)
        if answer is not None:
            await say(answer)

    async def _refuse(self, error: Exception, started: float, asked: Any) -> NoReturn:
        """Ends a telemetry stream. Raises CallEnded."""
        status = self._failed(TELEMETRY, error)
        await self._audited(asked, TELEMETRY, status.code, error)
        self._observe(TELEMETRY, status.code, started, asked, word_of(error))
        end(
            GrpcStatus.UNAUTHENTICATED if status.code == Code.UNAUTHORIZED else GrpcStatus.INVALID_ARGUMENT,
            status.message,
        )

    async def _until_stop(
        self, work: Coroutine[Any, Any, _Answer], unsaid: Callable[[_Answer], None] | None = None
    ) -> _Answer | None:
        """What `work` answers; None = this worker stops. `unsaid` gets the answer when the client
        has gone just before it was there.
        """
        if self._stopping.is_set():
            work.close()
            return None
        task = asyncio.ensure_future(work)
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._stopping.is_set() and current is not None and not current.cancelling():
                return None
            if unsaid is not None and task.done() and not task.cancelled() and task.exception() is None:
                unsaid(task.result())
            raise
        finally:
            self._waiting.discard(task)

    async def _call(self, request: Any, rpc: Rpc) -> Call:
        """Who asks is known before the body comes. Raises RocketError, EngineError, CallEnded."""
        by, client_id = self._caller(rpc)
        body = await rpc.message()
        if body is None:
            end(GrpcStatus.INTERNAL, "the request has no message")
        left_s = rpc.left_s()
        return Call(
            by,
            _read(request, body),
            self._common,
            client_id,
            left_s if left_s is not None and left_s < _FAR_S else None,
        )

    def _caller(self, rpc: Rpc, *, again: bool = False) -> tuple[Principal, str]:
        """Who asks, and the name that the client has given itself; `again`: on a stream that is
        open, whose time was checked when it began. Raises RocketError, NotAuthenticated.
        """
        by = self._principal(rpc.metadata, rpc.peer, again=again)
        client_id = rpc.metadata.get(CLIENT_ID, "")
        if not client_id or len(client_id) > _CLIENT_ID_CHARACTERS:
            raise RocketError(
                Code.CLIENT_ID_REQUIRED, f"{CLIENT_ID} of 1 to {_CLIENT_ID_CHARACTERS} characters is needed"
            )
        rpc.identify(rpc.peer if self._is_open else by.id)
        return by, client_id

    def _principal(self, metadata: Mapping[str, str], at: str, *, again: bool) -> Principal:
        """Open mode believes the key id, required mode the signature. Raises NotAuthenticated,
        RocketError.
        """
        engine = self._common.engine
        if self._is_open:
            return engine.callers.authenticate(signature.claimed_key_id(metadata), None)
        claim = signature.claim_of(metadata)
        if claim is None:
            raise NotAuthenticated("the request is not signed")
        if not again:
            claim.check_time(datetime.now(UTC), self._zones)
        return engine.callers.authenticate_signed(claim.key_id, claim.fits, at)

    def _trace(self, rpc: Rpc) -> None:
        """A request begins, which may be traced."""
        if self._spans is not None:
            self._spans.begin_call(rpc.path, rpc.metadata)

    def _failed(self, name: str, error: Exception) -> pb.Status:
        """What the client hears; what nobody has expected is logged."""
        if self._spans is not None:
            self._spans.failed(error)
        if not isinstance(error, EngineError | RocketError):
            log.error("%s failed", name, exc_info=error)
        return status_of(error)

    async def _audited(self, asked: Any, name: str, code: int, error: Exception | None) -> None:
        """Has the audit hear of a request; `asked` is what `begin` has made."""
        if error is not None or asked.verb not in self._audit.quiet:
            await self._audit.end(asked, _VERBS[name], code, error)

    def _observe(self, name: str, code: int, started: float, asked: Any, outcome: str = OK) -> None:
        self._metrics.observe(_VERBS[name], code, perf_counter() - started, asked, outcome)
        if self._spans is not None:
            self._spans.end(_VERBS[name], code)


def _read(request: Any, body: bytes) -> Any:
    """Raises RocketError."""
    try:
        return request.FromString(body)
    except DecodeError:
        raise RocketError(Code.BAD_REQUEST, f"the request is no {request.DESCRIPTOR.name}") from None
