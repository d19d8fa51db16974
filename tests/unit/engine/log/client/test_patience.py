"""The first calls of a start: what is repeated, and for how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine.errors import LogUnavailable, NotAuthorised, QueueInUse, StoreUnavailable
from engine.log.client import patience as module
from engine.log.client.patience import Patience, Refusals, made
from engine.log.kafka_errors import engine_error
from state.errors import StateUnavailable

SOON = (
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_CONTROLLER, KafkaError.BROKER_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH,
)  # fmt: skip
AWAY = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError.REQUEST_TIMED_OUT)
NEVER = (
    KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.UNSUPPORTED_VERSION, KafkaError._INVALID_ARG,
    KafkaError.POLICY_VIOLATION,
)  # fmt: skip


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NOT_READY_S", 0.2)
    monkeypatch.setattr(module, "PAUSE_S", (0.001, 0.002))


def failing(times: int, error: Exception) -> tuple[Callable[[], Awaitable[str]], list[int]]:
    """A step that raises some times, and what it did."""
    calls: list[int] = []

    async def step() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "done"

    return step, calls


@pytest.mark.parametrize(
    "error",
    [
        *(engine_error(KafkaError(code)) for code in SOON),
        StateUnavailable("Redis refused: LOADING"),
        StoreUnavailable("BUSY"),
        QueueInUse("x"),
    ],
    ids=lambda error: str(error)[:40],
)
async def test_what_answers_and_is_not_ready_is_asked_again_without_any_setting(error: Exception) -> None:
    step, calls = failing(3, error)
    assert await Patience(0).repeat(step) == "done"
    assert len(calls) == 4


@pytest.mark.parametrize("code", AWAY)
async def test_what_does_not_answer_is_waited_for_as_long_as_the_setting_says(code: int) -> None:
    error = engine_error(KafkaError(code))
    step, calls = failing(1, error)
    with pytest.raises(LogUnavailable):
        await Patience(0).repeat(step)
    assert len(calls) == 1
    step, calls = failing(3, error)
    assert await Patience(60).repeat(step) == "done"


async def test_a_kafka_that_has_answered_once_gets_time_to_answer_again() -> None:
    patience = Patience(0)
    await patience.repeat(failing(0, ValueError())[0])
    step, _ = failing(3, engine_error(KafkaError(KafkaError._TIMED_OUT)))
    assert await patience.repeat(step) == "done"


@pytest.mark.parametrize("code", NEVER)
async def test_what_a_repeat_does_not_heal_ends_at_once(code: int) -> None:
    step, calls = failing(1, engine_error(KafkaError(code)))
    with pytest.raises(LogUnavailable):
        await Patience(86_400).repeat(step)
    assert len(calls) == 1


@pytest.mark.parametrize("error", [NotAuthorised("x"), RuntimeError("x")])
async def test_what_is_none_of_kafka_or_redis_ends_at_once(error: Exception) -> None:
    step, calls = failing(1, error)
    with pytest.raises(type(error)):
        await Patience(86_400).repeat(step)
    assert len(calls) == 1


async def test_there_is_an_end_to_what_is_never_ready() -> None:
    step, calls = failing(1_000_000, engine_error(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)))
    with pytest.raises(LogUnavailable, match="NOT_LEADER_FOR_PARTITION"):
        await Patience(0).repeat(step)
    assert len(calls) > 1


@pytest.mark.parametrize(
    "text",
    ["SASL authentication error: Authentication failed", "error:0A000086:SSL routines::certificate verify failed"],
)
async def test_a_time_out_behind_which_is_a_refusal_ends_at_once(text: str) -> None:
    refusals = Refusals()
    refusals.heard(KafkaError(KafkaError._AUTHENTICATION if "SASL" in text else KafkaError._TRANSPORT, text))

    async def step() -> None:
        calls.append(1)
        with refusals.explained():
            raise engine_error(KafkaError(KafkaError._TIMED_OUT))

    calls: list[int] = []
    with pytest.raises(LogUnavailable, match="the last try"):
        await Patience(86_400).repeat(step)
    assert len(calls) == 1


async def test_a_setting_that_the_client_does_not_take_ends_at_once() -> None:
    async def step() -> None:
        calls.append(1)
        with made():
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "No such configuration property"))

    calls: list[int] = []
    with pytest.raises(LogUnavailable):
        await Patience(86_400).repeat(step)
    assert len(calls) == 1
