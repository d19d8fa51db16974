"""Bodies of strangers on the RocketMQ port: they are not read, and whoever else asks is served."""

from __future__ import annotations

import socket
import struct
import threading
import time
import urllib.request
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection

from tests.services import Up

BODY = 4_900_000
HEAD = (
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "x"),
    (":path", "/apache.rocketmq.v2.MessagingService/SendMessage"),
    ("content-type", "application/grpc"),
)
MOST_GROWTH_MB = 64
LIVE_S = 0.5  # on an idle machine 0.03


def resident_mb(up: Up) -> list[int]:
    """What each worker has in memory."""
    return [int(Path(f"/proc/{one['pid']}/statm").read_text().split()[1]) * 4 // 1024 for one in up.run["facades"]]


def pour(endpoints: str, streams: int, ended: list[bool]) -> None:
    """Half messages on one connection, as much of them as the server takes; notes whether it ends
    the connection.
    """
    host, _, port = endpoints.partition(":")
    http2 = H2Connection(H2Configuration(client_side=True))
    http2.initiate_connection()
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        try:
            connection.sendall(http2.data_to_send())
            http2.receive_data(connection.recv(65_536))
            for _ in range(streams):
                number = http2.get_next_available_stream_id()
                http2.send_headers(number, HEAD)
                http2.send_data(number, b"\0" + struct.pack(">I", BODY))
                left = min(http2.local_flow_control_window(number), BODY)
                while left > 0:
                    http2.send_data(number, b"A" * min(left, 16_384))
                    left -= 16_384
            connection.sendall(http2.data_to_send())
            while connection.recv(65_536):
                pass
            ended.append(True)
        except ConnectionError:
            ended.append(True)
        except TimeoutError:
            ended.append(False)


def test_bodies_of_strangers_take_no_room(guarded: Up) -> None:
    before, ended, slowest = resident_mb(guarded), list[bool](), 0.0
    threads = [threading.Thread(target=pour, args=(guarded.run["rocketmq"], 50, ended)) for _ in range(8)]
    for one in threads:
        one.start()
    while any(one.is_alive() for one in threads):
        began = time.monotonic()
        with urllib.request.urlopen(guarded.endpoint + "/live", timeout=30) as reply:
            assert reply.status == 200
        slowest = max(slowest, time.monotonic() - began)
        assert max(now - then for now, then in zip(resident_mb(guarded), before, strict=True)) < MOST_GROWTH_MB
        time.sleep(0.02)
    assert ended == [True] * len(threads)
    assert slowest < LIVE_S
