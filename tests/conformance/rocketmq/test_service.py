"""The endpoint as a part of the service: keys, a stop while clients wait, kills of workers."""

from __future__ import annotations

import hmac
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from tests.clients import ROOT, NotFetched, environment, fetched
from tests.conformance.rocketmq.client import Refused, Rocketmq
from tests.conformance.rocketmq.raw import CLIENT, connected, receiving, sending
from tests.conftest import absent
from tests.services import Up


def asked(up: Up, method: str, path: str, body: Any = None, user: str = "tester:any") -> Any:
    """A request of the native API."""
    headers = {"content-type": "application/json", "authorization": f"Basic {b64encode(user.encode()).decode()}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(up.endpoint + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.loads(reply.read() or b"null")


@pytest.fixture(scope="module")
def keys(guarded: Up) -> dict[str, str]:
    """Secrets by their key ids."""
    admin = "admin:" + (guarded.data / "admin_secret").read_text().strip()
    made = {}
    for name in ("shop", "stranger"):
        answer = asked(guarded, "POST", "/v1/keys", {"key_id": name, "principal": name}, admin)
        made[name] = answer["secret"]
    asked(guarded, "POST", "/v1/queues", {"name": "orders"}, f"shop:{made['shop']}")
    return made


def test_only_who_signs_with_a_key_is_served(guarded: Up, keys: dict[str, str]) -> None:
    def client(key: str, secret: str) -> Rocketmq:
        try:
            return Rocketmq(guarded.run["rocketmq"], key, secret)
        except NotFetched as error:
            absent(str(error))

    owner = client("shop", keys["shop"])
    try:
        producer, consumer = owner.producer(), owner.simple("orders", "orders", wait_s=2)
        owner.send(producer, "orders", "m")
        assert [one["body"] for one in owner.received(consumer, 1)] == ["m"]
        owner.close_all()
    finally:
        owner.close()
    stranger = client("stranger", keys["stranger"])
    try:
        producer = stranger.producer()
        with pytest.raises(Refused) as forbidden:
            stranger.send(producer, "orders", "m")
        assert "failed to fetch topic:orders route" in str(
            forbidden.value
        )  # the client's own words for a topic that is not there
        consumer = stranger.simple("strangers", "orders", wait_s=1)
        with pytest.raises(Refused) as forbidden:
            stranger.receive(consumer)
        assert "failed to fetch topic:orders route" in str(forbidden.value)
        admin = "admin:" + (guarded.data / "admin_secret").read_text().strip()
        assert "dlq.strangers" not in asked(guarded, "GET", "/v1/queues", user=admin)["queues"]
        stranger.close_all()
    finally:
        stranger.close()
    forger = client("shop", "another secret")
    try:
        producer = forger.producer(topics=["orders"])  # which says nothing of what it hears
        with pytest.raises(Refused, match="failed to fetch topic"):
            forger.send(producer, "orders", "m")
    finally:
        forger.close()


def signed(secret: str, at: datetime, key: str = "shop") -> tuple[tuple[str, str], ...]:
    """Metadata that a key has signed."""
    text = f"{at:%Y%m%dT%H%M%SZ}"
    made = hmac.digest(secret.encode(), text.encode(), "sha1").hex()
    words = f"MQv2-HMAC-SHA1 Credential={key}, SignedHeaders=x-mq-date-time, Signature={made}"
    return (*CLIENT, ("x-mq-date-time", text), ("authorization", words))


def test_the_first_group_of_an_account_gets_its_messages(guarded: Up) -> None:
    admin = "admin:" + (guarded.data / "admin_secret").read_text().strip()
    secret = asked(guarded, "POST", "/v1/keys", {"key_id": "tenant", "principal": "111122223333.shop"}, admin)["secret"]
    asked(guarded, "POST", "/v1/queues", {"name": "tenants"}, f"tenant:{secret}")
    with connected(guarded.run["rocketmq"]) as raw:

        def received() -> list[bytes]:
            answers = raw.received(
                receiving("tenants", "tenants", wait_s=5), metadata=signed(secret, datetime.now(UTC), "tenant")
            )
            assert answers[0].status.code in (Code.OK, Code.MESSAGE_NOT_FOUND), answers[0]
            return [one.message.body for one in answers if one.HasField("message")]

        sent = raw.ask("SendMessage", sending("tenants", b"m"), signed(secret, datetime.now(UTC), "tenant"))
        assert sent.status.code == Code.OK
        assert received() == [b"m"]
    assert "dlq.tenants" in asked(guarded, "GET", "/v1/queues", user=f"tenant:{secret}")["queues"]


def test_signatures_are_checked_before_anything_else(guarded: Up, keys: dict[str, str]) -> None:
    now = datetime.now(UTC)
    old = now - timedelta(minutes=16)
    route = pb.QueryRouteRequest(topic=pb.Resource(name="orders"))
    with connected(guarded.run["rocketmq"]) as raw:
        assert raw.ask("QueryRoute", route, signed(keys["shop"], now)).status.code == Code.OK
        for metadata in (CLIENT, signed("wrong", now), signed(keys["shop"], old)):
            assert raw.ask("QueryRoute", route, metadata).status.code == Code.UNAUTHORIZED
            assert raw.ask("SendMessage", sending("orders", b"m"), metadata).status.code == Code.UNAUTHORIZED
            (answer,) = raw.received(receiving("orders"), metadata=metadata)
            assert answer.status.code == Code.UNAUTHORIZED
            with pytest.raises(grpc.RpcError) as refused:
                next(raw.telemetry(iter([b""]), metadata))
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_a_stop_answers_who_waits_and_loses_nothing(programs: None, tmp_path: Path) -> None:
    up = Up(tmp_path, "--rocketmq-port", "0")
    try:
        up.wait_ready()
        asked(up, "POST", "/v1/queues", {"name": "orders"})
        with connected(up.run["rocketmq"]) as raw:
            raw.received(receiving("orders"))
            waiting = raw.receive(receiving("orders", wait_s=20))
            done = threading.Event()
            stream = raw.telemetry(silence(done))  # one that says nothing
            time.sleep(1)
            began = time.monotonic()
            up.process.send_signal(signal.SIGTERM)
            assert pb.ReceiveMessageResponse.FromString(next(waiting)).status.code == Code.MESSAGE_NOT_FOUND
            assert time.monotonic() - began < 8
            done.set()
            stream.cancel()
            up.process.wait(30)
            assert up.process.returncode == 0, up.text
    finally:
        up.close()


def silence(done: threading.Event) -> Iterator[bytes]:
    """A client that has nothing to say yet."""
    done.wait(20)
    yield b""


def test_nobody_pays_for_grpc_while_the_port_is_off() -> None:
    imports = "import sys, facade.app, facade.programs.cli.cli, facade.programs.stack.worker"
    program = f"{imports}; print('grpc' in sys.modules, 'google.protobuf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"


def test_an_ordered_topic_stays_in_order_while_workers_are_killed(programs: None, tmp_path: Path) -> None:
    messages, groups = 120, 4
    up = Up(tmp_path, "--rocketmq-port", "0", "--workers", "2")
    try:
        up.wait_ready()
        asked(up, "POST", "/v1/queues", {"name": "ordered", "fifo": True, "dedup_scope": "group", "lease_seconds": 5})
        try:
            client = Rocketmq(up.run["rocketmq"])
        except NotFetched as error:
            absent(str(error))
        killer = threading.Thread(target=kill_workers, args=(up, 3))
        killer.start()
        try:
            producer, consumer = client.producer(topics=["ordered"]), client.push("ordered", "ordered")
            for number in range(messages):
                send_until_sent(client, producer, f"m{number}", f"g{number % groups}")
                time.sleep(0.15)  # so that workers are killed meanwhile
            killer.join(120)
            got = client.pushed(consumer, messages, seconds=180)
            end = time.monotonic() + 120
            while len({one["body"] for one in got}) < messages and time.monotonic() < end:
                time.sleep(1)
                got = client.pushed(consumer, len(got) + 1, seconds=1)
            for group in range(groups):
                seen = [int(one["body"][1:]) for one in got if one["group"] == f"g{group}"]
                firsts = list(dict.fromkeys(seen))
                assert firsts == list(range(group, messages, groups)), firsts
        finally:
            killer.join(60)
            client.close()
    finally:
        up.close()


def kill_workers(up: Up, times: int) -> None:
    """kill -9 one worker after the other; each is started again."""
    for number in range(times):
        time.sleep(6)
        pids = [facade["pid"] for facade in up.run["facades"]]
        os.kill(pids[number % len(pids)], signal.SIGKILL)


def send_until_sent(client: Rocketmq, producer: int, body: str, group: str) -> None:
    """Sends a message as often as it takes. One that failed may be there, with another id."""
    end = time.monotonic() + 60
    while True:
        try:
            client.send(producer, "ordered", body, group=group)
            return
        except Refused:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def test_the_program_of_the_guide_says_hello(rocketmq_up: Up, endpoints: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "use-a-client.md").read_text()
    (program,) = [
        text for text in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "rocketmq" in text
    ]
    program = program.replace("http://127.0.0.1:9400", rocketmq_up.endpoint).replace("127.0.0.1:8081", endpoints)
    try:
        client = environment(fetched(ROOT / "tests" / "conformance" / "rocketmq" / "rocketmq.lock"))
    except NotFetched as error:
        absent(str(error))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**client, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
