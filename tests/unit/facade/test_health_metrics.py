"""/live, /ready, /health and /metrics."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest

from engine.errors import NotAuthenticated, Overloaded, StoreUnavailable
from engine.meters.shapes import ReceiveCounts, TimesOf
from engine.shapes import Alarm, Principal, QueueCounts
from facade.http import health, queue_metrics
from facade.http.metrics import FROM_ZERO, Metrics
from runtime.asked import Asked
from tests.docs.metrics import counted
from tests.unit.facade.double import RecordingEngine


async def sample(client: httpx.AsyncClient, name: str) -> float:
    lines = (await client.get("/metrics")).text.splitlines()
    values = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " ")]
    return values[0] if values else 0.0


async def test_a_process_is_live_whatever_its_parts_are(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.error = RuntimeError("broken")
    engine.refuse = NotAuthenticated()

    assert (await client.get("/live")).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("parts", "status"), [({"kafka": "ok", "redis": "ok"}, 200), ({"kafka": "ok", "redis": "can't be reached"}, 503)]
)
async def test_a_worker_is_ready_when_every_part_is(
    client: httpx.AsyncClient, engine: RecordingEngine, parts: dict[str, str], status: int
) -> None:
    engine.parts = parts

    answer = await client.get("/ready")

    assert (answer.status_code, answer.json()["parts"]) == (status, {**parts, "requests": "ok"})
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)


async def test_a_worker_whose_readiness_fails_is_not_ready(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.error = RuntimeError("secret")

    answer = await client.get("/ready")

    assert (answer.status_code, "secret" in answer.text) == (503, False)


async def test_a_worker_whose_parts_hang_is_not_ready(
    client: httpx.AsyncClient, engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "READY_WITHIN_S", 0.01)

    async def hang() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(engine, "ready", hang, raising=False)

    answer = await client.get("/ready")

    assert (answer.status_code, "no answer within" in answer.text) == (503, True)


async def test_requests_are_counted_by_verb_and_status(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["receive"] = []
    await client.post("/v1/queues/orders/receive")
    await client.post("/v1/queues/orders/receive", content=b"{")
    await client.get("/nothing")
    engine.error = Overloaded()
    await client.get("/v1/queues/orders")

    assert await sample(client, 'leaseway_requests_total{status="200",verb="receive"}') == 1
    assert await sample(client, 'leaseway_requests_total{status="400",verb="receive"}') == 1
    assert await sample(client, 'leaseway_requests_total{status="503",verb="get_queue"}') == 1
    assert await sample(client, 'leaseway_requests_total{status="404",verb="none"}') == 1
    assert await sample(client, 'leaseway_request_seconds_count{verb="receive"}') == 2


async def test_a_waiting_receive_shows(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.hold = asyncio.Event()
    engine.answers["receive"] = []
    waiting = asyncio.create_task(client.post("/v1/queues/orders/receive"))
    while not engine.calls:
        await asyncio.sleep(0)

    assert await sample(client, "leaseway_receives_in_progress") == 1
    engine.hold.set()
    await waiting
    assert await sample(client, "leaseway_receives_in_progress") == 0


async def test_the_engines_counters_are_shown(client: httpx.AsyncClient) -> None:
    assert await sample(client, "leaseway_window_loads_total") == 3
    assert await sample(client, "leaseway_loaders") == 2
    text = (await client.get("/metrics")).text
    assert "# TYPE leaseway_window_loads_total counter" in text
    assert "# TYPE leaseway_loaders gauge" in text


async def test_alarms_are_counted_by_health_and_named_by_metrics(client: httpx.AsyncClient) -> None:
    answer = await client.get("/health")
    said = answer.json()
    assert re.fullmatch("on|off: .+", said.pop("native"))  # which is built here
    assert said.pop("plane") == "off: this is no engine"
    assert (answer.status_code, said) == (200, {"status": "alarm", "alarms": {"retention_near": 1}})
    lines = (await client.get("/metrics")).text.splitlines()
    assert 'leaseway_alarm{kind="retention_near",queue="orders"} 7.0' in lines


async def test_metrics_name_no_queue_to_who_is_not_told_of_all(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.sees = False
    lines = (await client.get("/metrics")).text.splitlines()
    assert [line for line in lines if line.startswith("leaseway_alarm{")] == [
        'leaseway_alarm{kind="retention_near",queue=""} 7.0'
    ]
    engine.refuse = NotAuthenticated()
    assert (await client.get("/metrics")).status_code == 200, "nobody in particular is let in"
    assert (await client.get("/metrics", auth=("k", "wrong"))).status_code == 401, "who claims to be somebody has to be"


async def test_metrics_have_all_messages_and_the_worst_queues(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.answers["count_each"] = [
        QueueCounts(f"q{n}", ready=n, oldest_at_ms=4_000 + n * 10, as_of_ms=9_000) for n in range(60)
    ]
    who = ("k", "secret")
    lines = (await client.get("/metrics", auth=who)).text.splitlines()
    assert f'leaseway_messages{{state="ready"}} {sum(range(60))}' in lines
    assert 'leaseway_queue_messages{queue="q7",state="ready"} 7' in lines
    assert 'leaseway_queue_oldest_message_age_seconds{queue="q0"} 6.0' in lines
    assert 'leaseway_queue_oldest_message_age_seconds{queue="q49"} 5.51' in lines
    assert not any('queue="q50"' in line for line in lines)
    assert "leaseway_messages{" not in (await client.get("/metrics")).text, "nobody in particular has no numbers"
    engine.error = StoreUnavailable("away")
    text = (await client.get("/metrics", auth=who)).text
    assert "leaseway_messages{" not in text
    assert "leaseway_requests_total" in text


async def test_metrics_have_the_queues_with_most_receives_for_nothing_and_most_that_wait(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.received = [ReceiveCounts(f"q{n}", "default", n, 60 - n) for n in range(60)]
    engine.stored = {f"q{n}": 1000 * n for n in range(60)}
    engine.error = StoreUnavailable("away")  # what a worker has counted for itself needs no Redis
    lines = (await client.get("/metrics", auth=("k", "secret"))).text.splitlines()
    empty = [line for line in lines if line.startswith("leaseway_queue_empty_receives_total{")]
    waiting = [line for line in lines if line.startswith("leaseway_queue_waiting_receives{")]
    sent = [line for line in lines if line.startswith("leaseway_queue_sent_bytes_total{")]
    assert (len(empty), len(waiting), len(sent)) == (50, 50, 50)
    assert sent[0] == 'leaseway_queue_sent_bytes_total{queue="q59"} 59000'
    assert empty[0] == 'leaseway_queue_empty_receives_total{queue="q59",tag="default"} 59'
    assert waiting[0] == 'leaseway_queue_waiting_receives{queue="q0",tag="default"} 60'
    assert "q59" not in (await client.get("/metrics")).text, "nobody in particular has no numbers"

    engine.error = None
    found = (await client.get("/metrics/queues?family=leaseway_queue_waiting_receives")).text
    assert found.count("\n") == 60 + 2
    found = (await client.get("/metrics/queues?family=leaseway_queue_sent_bytes_total")).text
    assert found.count("\n") == 60 + 2


async def test_metrics_do_not_wait_for_a_mute_redis(
    client: httpx.AsyncClient, engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_metrics, "WITHIN_S", 0.01)

    async def count_each(by: Principal, prefix: str = "") -> list[QueueCounts]:
        await asyncio.Event().wait()
        return []

    engine.count_each = count_each  # type: ignore[attr-defined]
    assert "leaseway_requests_total" in (await client.get("/metrics", auth=("k", "secret"))).text


async def test_metrics_of_queues(client: httpx.AsyncClient, engine: RecordingEngine) -> None:
    engine.answers["count_each"] = [QueueCounts("a", ready=1, as_of_ms=9), QueueCounts("b", ready=2, as_of_ms=9)]
    answer = await client.get("/metrics/queues?prefix=o&family=leaseway_queue_messages")
    assert [call[:1] + call[2:] for call in engine.calls] == [("count_each", "o")]
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = [line for line in answer.text.splitlines() if 'state="ready"' in line]
    assert found == [f'leaseway_queue_messages{{queue="{name}",state="ready"}} {n}' for n, name in enumerate("ab", 1)]
    assert "seconds" not in answer.text
    wrong = await client.get("/metrics/queues?family=all")
    assert (wrong.status_code, wrong.json()["field"]) == (400, "family")


async def test_metrics_name_the_queues_that_who_asks_is_told_of(
    client: httpx.AsyncClient, engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.alarmed = [Alarm("retention_near", queue, number) for queue, number in (("orders", 7), ("a", 1), ("b", 2))]
    monkeypatch.setattr(engine, "knows", lambda by, queue: queue == "orders")
    lines = (await client.get("/metrics")).text.splitlines()
    assert (
        sorted(line for line in lines if line.startswith("leaseway_alarm{"))
        == [
            'leaseway_alarm{kind="retention_near",queue="orders"} 7.0',
            'leaseway_alarm{kind="retention_near",queue=""} 3.0',
        ][::-1]
    )


def test_a_counter_is_shown_before_it_has_counted() -> None:
    text = Metrics(lambda: {"rebuilds_total": 2.0}).text().decode()

    assert {f"leaseway_{name}" for name in FROM_ZERO} == counted(), "FROM_ZERO has what the engine counts by"
    assert "leaseway_rebuilds_total 2.0\n" in text
    assert "leaseway_snapshots_total 0.0\n" in text


def test_series_of_one_of_several_workers_say_of_which() -> None:
    metrics = Metrics(lambda: {"units_owned": 3.0, 'stale_handles_total{reason="settled"}': 1.0}, worker="1")
    metrics.observe("send", 200, 0.002, Asked(""))

    series = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]

    assert [line for line in series if not re.search(r'worker="1"[,}]', line)] == []
    assert 'leaseway_units_owned{worker="1"} 3.0' in series
    assert 'leaseway_stale_handles_total{reason="settled",worker="1"} 1.0' in series
    assert 'leaseway_request_seconds_bucket{le="0.0025",verb="send",worker="1"} 1.0' in series
    assert any(line.startswith('process_resident_memory_bytes{worker="1"} ') for line in series)


def test_how_long_messages_took_is_shown_by_bounds() -> None:
    queue, hand = TimesOf("queue", "", [0.005, 1.0], [2, 0, 1], 4.5), TimesOf("hand", "ack", [0.005, 1.0], [0, 3, 0], 2)
    text = Metrics(dict, times=lambda: [queue, hand]).text().decode()
    assert 'leaseway_time_in_queue_seconds_bucket{le="1.0"} 2.0' in text
    assert 'leaseway_time_in_queue_seconds_bucket{le="+Inf"} 3.0' in text
    assert "leaseway_time_in_queue_seconds_sum 4.5" in text
    assert 'leaseway_time_in_hand_seconds_bucket{le="1.0",verb="ack"} 3.0' in text


async def test_a_worker_that_is_alone_has_no_label(client: httpx.AsyncClient) -> None:
    assert await sample(client, "process_cpu_seconds_total") > 0
    assert "worker=" not in (await client.get("/metrics")).text
