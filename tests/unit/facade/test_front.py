"""The front, with a dialect of its own: what every dialect gets without asking."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, cast

import httpx
import pytest
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.engine import Engine
from engine.errors import EngineError, NotAuthenticated, Overloaded
from engine.shapes import Principal
from facade.app import DIALECTS, create_app
from facade.config import Settings
from facade.dialect import Carried, Refusal, Response
from facade.http.bounds.intake import Intake
from facade.http.front import LONG_BYTES, Front, Serve
from facade.http.metrics import Metrics
from facade.http.problem import ProblemError
from tests.unit.facade.double import RecordingEngine
from tests.unit.facade.test_asgi import Client


class ToyExchange(Struct):
    """Says what it is asked, in upper case; every error is inside a 200."""

    headers: Mapping[bytes, bytes]
    changes: bool
    suspects_get = False
    signs_body: bool
    long_poll: bool
    does: Callable[[str], Any]
    most_bytes: int | None = None
    verb: str = "toy.unknown"
    id_header: bytes = b"x-request-id"
    short_id: bool = False
    seen: list[bytes] = []

    def check_head(self) -> None:
        if b"x-nobody" in self.headers:
            raise NotAuthenticated

    def principal(self, body: bytes) -> Principal:
        self.seen.append(body)
        if b"x-stranger" in self.headers:
            raise NotAuthenticated
        return Principal("toy")

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        self.verb = "toy.shout"

        async def shout() -> Any:
            return self.does(f"{by.id}: {body.decode().upper()}")

        return shout()

    def output(self, content: str) -> Response:
        return Response(200, [], content.encode())

    def error(self, error: Exception) -> Response:
        return Response(200, [], f"error {type(error).__name__} {getattr(error, 'code', '')}".encode())


class Toy:
    """Claims what begins with /toy; how it is, a test says."""

    name = "toy"
    errors: Mapping[type[EngineError], Any] = {}

    def __init__(self, does: Callable[[str], Any] = str, **given: bool | int) -> None:
        self.given: dict[str, Any] = {"changes": True, "signs_body": False, "long_poll": False, **given}
        self.does = does
        self.exchange: ToyExchange | None = None

    def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> ToyExchange | None:
        if not scope["path"].startswith("/toy"):
            return None
        self.exchange = ToyExchange(headers, does=self.does, **self.given)
        return self.exchange


class Fronts:
    """Makes fronts over toys, all with one intake and one set of metrics."""

    def __init__(self) -> None:
        self.intake = Intake(100)
        self.metrics = Metrics(dict)
        self.passed: list[str] = []

    def rest(self, serve: Serve) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            self.passed.append(scope["path"])

        return app

    async def ask(self, *toys: Toy, client: Client | None = None, path: str = "/toy", **headers: str) -> Client:
        client = client or Client(b"hello")
        given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "method": "POST", "path": path, "headers": given, "query_string": b""}
        await Front(toys, self.intake, self.metrics, self.rest)(scope, client.receive, client.send)
        assert (self.intake.shares.held, self.intake.requests) == (0, 0)
        return client

    def counted(self, verb: str, status: int) -> bool:
        return f'leaseway_requests_total{{status="{status}",verb="{verb}"}} 1.0' in self.metrics.text().decode()


@pytest.fixture
def fronts() -> Fronts:
    return Fronts()


async def test_a_long_body_is_read_while_others_are_served(fronts: Fronts) -> None:
    """Two requests: the second is answered while the first is still being read."""
    other = threading.Event()
    threads: list[threading.Thread] = []

    class Slow(Toy):
        def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> ToyExchange | None:
            exchange = super().claims(scope, headers)
            return exchange and SlowExchange(*(getattr(exchange, name) for name in exchange.__struct_fields__))

    class SlowExchange(ToyExchange):
        def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
            if len(body) > LONG_BYTES:
                threads.append(threading.current_thread())
                assert other.wait(10), "the other request was not served"
            return super().start(by, body)

    fronts.intake = Intake(2 * LONG_BYTES)
    slow = asyncio.create_task(fronts.ask(Slow(), client=Client(b"x" * (LONG_BYTES + 1))))
    while not threads:
        await asyncio.sleep(0.01)
    scope = {"type": "http", "method": "POST", "path": "/toy", "headers": [], "query_string": b""}
    quick = Client(b"hello")
    await Front([Slow()], fronts.intake, fronts.metrics, fronts.rest)(scope, quick.receive, quick.send)
    assert body_of(quick) == b"toy: HELLO"
    other.set()
    assert body_of(await slow) == b"toy: " + b"X" * (LONG_BYTES + 1)
    assert threads != [threading.main_thread()]


def body_of(client: Client) -> bytes:
    return bytes(client.sent[1]["body"])


async def test_a_request_is_served_in_the_first_dialect_that_claims_it(fronts: Fronts) -> None:
    first, second = Toy(), Toy()

    assert body_of(await fronts.ask(first, second)) == b"toy: HELLO"
    assert second.exchange is None
    assert fronts.counted("toy.shout", 200)


async def test_what_no_dialect_claims_is_for_the_rest(fronts: Fronts) -> None:
    assert (await fronts.ask(Toy(), path="/other")).sent == []
    assert fronts.passed == ["/other"]


@pytest.mark.parametrize("signs_body", [False, True])
async def test_who_asks_is_told_before_the_body_is_read_unless_it_is_signed(fronts: Fronts, signs_body: bool) -> None:
    toy, client = Toy(signs_body=signs_body), Client(b"hello")

    assert (
        body_of(await fronts.ask(toy, client=client, x_stranger="yes")) == b"error NotAuthenticated not_authenticated"
    )
    assert toy.exchange is not None
    assert toy.exchange.seen == [b"hello" if signs_body else b""]
    assert len(client._events) == (0 if signs_body else 1)
    assert fronts.counted("toy.unknown", 200)


async def test_a_signed_body_is_not_read_when_its_head_is_wrong(fronts: Fronts) -> None:
    toy, client = Toy(signs_body=True), Client(b"hello")

    assert body_of(await fronts.ask(toy, client=client, x_nobody="yes")) == b"error NotAuthenticated not_authenticated"
    assert toy.exchange is not None
    assert (toy.exchange.seen, len(client._events)) == ([], 1)


CROSS, SAME = {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-origin"}


@pytest.mark.parametrize(
    ("toy", "headers", "refused"),
    [
        ({}, CROSS, True),
        ({}, {"sec_fetch_site": "same-site"}, True),
        ({}, {"origin": "http://elsewhere"}, True),
        ({}, {"origin": "null"}, True),
        ({}, {"origin": "http://here:9400", "host": "here:9400"}, False),
        ({}, {"origin": "http://here:9400", "host": "here"}, True),
        ({}, SAME, False),
        ({}, {}, False),
        ({"changes": False}, CROSS, False),
    ],
)
async def test_pages_of_other_sites_change_nothing(
    fronts: Fronts, toy: dict[str, Any], headers: dict[str, Any], refused: bool
) -> None:
    answer = body_of(await fronts.ask(Toy(**toy), **headers))

    assert answer == (b"error ProblemError cross_site" if refused else b"toy: HELLO")


async def test_a_body_that_is_too_large_is_refused_in_the_dialect(fronts: Fronts) -> None:
    assert body_of(await fronts.ask(Toy(), client=Client(b"x" * 101))) == b"error ProblemError body_too_large"


async def test_a_dialect_may_take_less_than_the_service(fronts: Fronts) -> None:
    toy = Toy(most_bytes=10)
    assert body_of(await fronts.ask(toy, client=Client(b"x" * 10))) == b"toy: " + b"X" * 10
    for client in (Client(b"x" * 11), Client(b"x" * 6, b"x" * 5)):
        assert body_of(await fronts.ask(toy, client=client)) == b"error ProblemError body_too_large"
    # What the head says is believed: nothing is read.
    unread = Client(b"")
    assert body_of(await fronts.ask(toy, client=unread, content_length="11")) == b"error ProblemError body_too_large"
    assert len(unread._events) == 1


@pytest.mark.parametrize(
    ("error", "logged"),
    [(RuntimeError("a bug"), True), (Overloaded(), False), (Refusal("no"), False), (ProblemError("too_deep"), False)],
)
async def test_what_nobody_expects_is_logged_once(
    fronts: Fronts, error: Exception, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(text: str) -> None:
        raise error

    with caplog.at_level(logging.ERROR):
        answer = body_of(await fronts.ask(Toy(fails)))

    assert answer.startswith(f"error {type(error).__name__}".encode())
    assert [record.getMessage() for record in caplog.records] == (["toy.shout failed"] if logged else [])


@pytest.mark.parametrize("fails", ["nothing", "the encoding", "the connection"])
async def test_what_no_answer_carried_goes_back(fronts: Fronts, fails: str) -> None:
    back: list[str] = []

    class Gone(Client):
        async def send(self, message: Message) -> None:
            raise OSError("gone")

    def does(text: str) -> Carried:
        return Carried(b"no text" if fails == "the encoding" else text, lambda: back.append(text))

    if fails == "the connection":
        with pytest.raises(OSError, match="gone"):
            await fronts.ask(Toy(does), client=Gone(b"hello"))
    else:
        await fronts.ask(Toy(does))

    assert back == ([] if fails == "nothing" else ["toy: HELLO"])


async def test_a_long_poll_shows_while_it_waits(fronts: Fronts) -> None:
    shown: list[bool] = []

    def does(text: str) -> str:
        shown.append("leaseway_receives_in_progress 1.0" in fronts.metrics.text().decode())
        return text

    await fronts.ask(Toy(does, long_poll=True))
    await fronts.ask(Toy(does))

    assert shown == [True, False]


async def test_a_client_that_goes_before_it_has_said_all_is_counted_and_not_answered(fronts: Fronts) -> None:
    client = Client(b"a", b"b")
    client._events.pop()
    client.go()

    assert (await fronts.ask(Toy(), client=client)).sent == []
    assert fronts.counted("toy.unknown", 499)


def errors_below(error: type[EngineError]) -> Iterator[type[EngineError]]:
    yield error
    for child in error.__subclasses__():
        yield from errors_below(child)


@pytest.mark.parametrize("make", DIALECTS, ids=str)
def test_every_dialect_says_every_error_of_the_engine(make: Callable[..., Any]) -> None:
    dialect = make(cast(Engine, RecordingEngine()), Settings())
    ours = {error for error in errors_below(EngineError) if error.__module__ == EngineError.__module__}

    assert ours - dialect.errors.keys() == set()


def test_dialects_have_names_of_their_own() -> None:
    names = [make(cast(Engine, RecordingEngine()), Settings()).name for make in DIALECTS]

    assert sorted(names) == ["emq", "mns", "native", "sqs"]


@pytest.mark.parametrize("path", ["/v1/queues", "/", "/docs", "/metrics", "/nothing"])
async def test_open_mode_answers_to_names_of_this_machine_only(path: str) -> None:
    """A page whose name was made to point here (DNS rebinding) says in Host by which name it
    came.
    """
    engine = RecordingEngine()
    for auth, host, refused in (
        ("open", "evil.example", True),
        ("open", "localhost:9400", False),
        ("required", "queues.example", False),
    ):
        app = create_app(Settings(auth=auth, admin_key_secret="s"), cast(Engine, engine))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{host}") as client:
            got = [
                await client.get(path),
                await client.post(path, content=b"{}", headers={"x-amz-target": "AmazonSQS.ListQueues"}),
            ]
        assert [one.status_code == 421 for one in got] == [refused, refused]
        if refused:
            assert [one.json()["code"] for one in got] == ["misdirected", "misdirected"]
            assert engine.calls == []
