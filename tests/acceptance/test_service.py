"""The whole service over HTTP: two workers behind one port, and a stop and start in mid-traffic."""

from __future__ import annotations

import contextlib
import time

import redis

from tests.acceptance.traffic import Client, Traffic
from tests.conftest import StartUp


def test_what_one_connection_sent_another_receives_at_once_1000_of_1000(leaseway_up: StartUp) -> None:
    up = leaseway_up("--workers", "2")
    up.wait_ready()
    found = 0
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(Client(up.endpoint))) for _ in range(8)]
        assert clients[0].call("POST", "/v1/queues", {"name": "q"})[0] == 201
        for number in range(1000):
            sender, receiver = clients[number % 8], clients[(number * 3 + 1) % 8]
            assert sender.call("POST", "/v1/queues/q/messages", {"messages": [{"body": str(number)}]})[0] == 200
            status, answer = receiver.call("POST", "/v1/queues/q/receive", {"max": 10})
            found += status == 200 and [m["body"] for m in answer["messages"]] == [str(number)]
            receiver.call("POST", "/v1/queues/q/ack", {"handles": [m["handle"] for m in answer["messages"]]})
        pages = [clients[n].call("GET", "/v1/queues/q")[1]["tags"][0]["backlog"] for n in range(8)]
    assert (found, pages) == (1000, [0] * 8)
    with redis.Redis.from_url(up.run["redis"]["url"]) as connection:
        ways = [client["addr"] for client in connection.client_list()]
    assert len(ways) > 1 and all("/redis/redis.sock" in way for way in ways), ways


def test_a_stop_and_a_start_in_mid_traffic_lose_nothing_and_forget_no_ack(leaseway_up: StartUp) -> None:
    up = leaseway_up()
    up.wait_ready()
    with contextlib.closing(Client(up.endpoint)) as client:
        assert client.call("POST", "/v1/queues", {"name": "q"})[0] == 201
    traffic = Traffic(up.endpoint, "q")
    traffic.start()
    time.sleep(2)
    stopped_at = time.monotonic()
    assert up.stop() == 0
    again = leaseway_up(data=up.data, port=up.port)
    again.wait_ready()
    ready_at = time.monotonic()
    time.sleep(2)
    traffic.stop()
    print(
        f"stop and start: {len(traffic.acked_sends)} sends answered, {len(traffic.lost())} lost,"
        f" {ready_at - stopped_at:.1f} s away, delivered again after an ack: {len(traffic.again_after_ack)}"
    )
    assert traffic.lost() == set()
    assert traffic.again_after_ack == []
