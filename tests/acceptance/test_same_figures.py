"""What is counted, written down and told of requests is the same whichever way they go: by the
plane, or by Python alone.

The same traffic, by real clients of two dialects, at a service with the plane and at one without
it. The client notes what it was answered, and how long that took at least.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from schemas.records.watching import AuditRecord
from schemas.topics import audit_topic
from schemas.wire import decode
from tests.acceptance.figures import SLOW_S, Book, Caller, Metrics
from tests.conformance.beside import ADMIN_SECRET, beside, new_key
from tests.conformance.conftest import Running
from tests.conftest import StartUp
from tests.services import Up
from tests.stopping import stand_still

pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("library"),
    pytest.mark.skipif(os.environ.get("LEASEWAY_NATIVE") == "off", reason="there is no plane without the library"),
]

WITHIN_S = 60.0
SETTINGS = {
    "METER_MINUTE_S": "1", "SEND_TIMEOUT_MS": "1000", "DEFAULT_PARTITIONS": "1",
    "LOG_FORMAT": "json", "ACCESS_LOG_EVERY": "1",
}  # fmt: skip
DAILY_BYTES = 20_000
HELD_S = 0.4
HOT = (
    "sqs.SendMessage",
    "sqs.SendMessageBatch",
    "sqs.ReceiveMessage",
    "sqs.DeleteMessage",
    "sqs.DeleteMessageBatch",
    "send",
    "receive",
    "ack",
)
# Metrics that appear by the time of something, not by what was asked.
BY_CHANCE = {
    "leaseway_loaded_chunks_total", "leaseway_write_through_failed_total", "leaseway_snapshots_total",
    "leaseway_deliveries_returned_total", "leaseway_deliveries_too_late_to_return_total",
    "leaseway_journal_entries_read_total", "leaseway_journal_entries_total", "leaseway_alarm",
}  # fmt: skip


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module()
    started.wait_ready()
    return started


class Story:
    """A service, what happens there, and what is known of it then."""

    def __init__(self, up: Up, service: Running, prefix: str, *, plane: bool, required: bool) -> None:
        self.up, self.service, self.prefix, self.plane, self.required = up, service, prefix, plane, required
        self.book = Book()
        self.admin = httpx.Client(base_url=service.endpoint, auth=("admin", ADMIN_SECRET), timeout=60)
        self.callers = {
            name: Caller(service, self.key(name), self.book, signs=required) for name in ("shop", "capped", "stranger")
        }
        self.shop = self.callers["shop"]
        self.urls = {
            name: self.callers[owner].sqs("CreateQueue", QueueName=name)["QueueUrl"]
            for name, owner in (("orders", "shop"), ("fails", "shop"), ("bounded", "capped"))
        }
        self.before = Metrics(service)

    def key(self, principal: str) -> tuple[str, str]:
        return new_key(self.service, principal) if self.required else (principal, "none")

    def close(self) -> None:
        self.admin.close()
        for caller in self.callers.values():
            caller.close()

    # One round of each dialect, and what is to be counted of it.

    def send(self, queue: str, *bodies: str, caller: str = "shop", **options: Any) -> None:
        by, url = self.callers[caller], self.urls[queue]
        if len(bodies) == 1:
            answer = by.sqs("SendMessage", QueueUrl=url, MessageBody=bodies[0], **options)
        else:
            entries = [{"Id": f"{n}", "MessageBody": body} for n, body in enumerate(bodies)]
            answer = by.sqs("SendMessageBatch", QueueUrl=url, Entries=entries, **options)
        self._sent(queue, bodies, answer["ResponseMetadata"]["HTTPStatusCode"])
        found = by.native("send", queue, {"messages": [{"body": body} for body in bodies]}, **options)
        self._sent(queue, bodies, found.status_code)

    def _sent(self, queue: str, bodies: Sequence[str], status: int) -> None:
        if status == 200:
            subject = "single_send_request" if len(bodies) == 1 else "batch_send_request"
            self.book.meter(queue, None, subject, len(bodies))
            self.book.sent_bytes[queue,] += sum(map(len, bodies))

    def receive_by_sqs(self, queue: str, wait_s: int, most: int = 10, *, slow: bool = False) -> list[str]:
        answer = self.shop.sqs(
            "ReceiveMessage",
            slow=slow,
            QueueUrl=self.urls[queue],
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait_s,
            AttributeNames=["ApproximateReceiveCount"],
        )
        handles = [message["ReceiptHandle"] for message in answer.get("Messages", ())]
        self._received(
            queue, wait_s, handles, [one["Attributes"]["ApproximateReceiveCount"] for one in answer.get("Messages", ())]
        )
        return handles

    def receive_by_native(self, queue: str, wait_s: int, most: int = 10, *, slow: bool = False) -> list[str]:
        answer = self.shop.native("receive", queue, {"max": most, "wait_seconds": wait_s}, slow=slow)
        handles = [message["handle"] for message in answer.json()["messages"]]
        self._received(queue, wait_s, handles, [one["receive_count"] for one in answer.json()["messages"]])
        return handles

    def _received(self, queue: str, wait_s: int, handles: list[str], counts: list[Any]) -> None:
        self.book.meter(queue, "default", "long_receive_request" if wait_s else "short_receive_request", len(handles))
        self.book.first += sum(int(count) == 1 for count in counts)

    def ack_by_sqs(self, queue: str, handles: list[str], done: int) -> None:
        url = self.urls[queue]
        if len(handles) == 1:
            self.shop.sqs("DeleteMessage", QueueUrl=url, ReceiptHandle=handles[0])
        else:
            entries = [{"Id": f"{n}", "ReceiptHandle": handle} for n, handle in enumerate(handles)]
            self.shop.sqs("DeleteMessageBatch", QueueUrl=url, Entries=entries)
        self.book.meter(queue, "default", "delete_request", done)
        self.book.acked += done

    def ack_by_native(self, queue: str, handles: list[str], done: int) -> None:
        self.shop.native("ack", queue, {"handles": handles})
        self.book.meter(queue, "default", "delete_request", done)
        self.book.acked += done

    def hold(self) -> None:
        """Messages wait for a while, are given back by each dialect after a while, and acked."""
        url = self.urls["orders"]
        for _ in range(3):
            self.send("orders", "held")
            time.sleep(HELD_S)
            first, second = self.receive_by_sqs("orders", 5, 1), self.receive_by_native("orders", 5, 1)
            time.sleep(HELD_S)
            self.shop.sqs("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=first[0], VisibilityTimeout=0)
            self.shop.native("release", "orders", {"handles": second})
            for _ in range(2):
                self.book.meter("orders", "default", "change_request", 1)
                self.book.released += 1
            self.empty("orders", 2)

    def empty(self, queue: str, expect: int, most: int = 10) -> None:
        """Receives and acks so many messages, in turn by one dialect and the other."""
        ways = [(self.receive_by_sqs, self.ack_by_sqs), (self.receive_by_native, self.ack_by_native)]
        got = turn = 0
        while got < expect:
            receive, ack = ways[turn % 2]
            turn += 1
            if handles := receive(queue, 5, most):
                got += len(handles)
                ack(queue, handles, len(handles))
        assert got == expect

    # The story.

    def begin(self) -> None:
        """Returns when the plane serves most of what it can."""
        end = time.monotonic() + WITHIN_S
        while True:
            before = Metrics(self.service).of("leaseway_plane_requests_total", "way").get(("plane",), 0)
            for queue in ("orders", "fails"):
                self.send(queue, "one")
                self.empty(queue, 2, 1)
            by_plane = Metrics(self.service).of("leaseway_plane_requests_total", "way").get(("plane",), 0) - before
            if not self.plane or by_plane >= (4 if self.required else 8):  # of 6, or of 12
                return
            assert time.monotonic() < end, "the plane serves nobody"
            time.sleep(0.2)

    def traffic(self) -> None:
        for n in range(5):
            self.send("orders", f"{n}")
            self.empty("orders", 2)
        self.send("orders", "a", "b", "c")
        self.empty("orders", 6)
        self.hold()
        self.send("orders", "x")
        handles = self.receive_by_sqs("orders", 5)
        handles += self.receive_by_native("orders", 5) if len(handles) < 2 else []
        for handle in handles:
            self.ack_by_sqs("orders", [handle], 1)
            self.ack_by_native("orders", [handle], 0)  # it is stale by now
        assert self.receive_by_sqs("orders", 1, slow=True) == self.receive_by_native("orders", 1, slow=True) == []
        assert self.receive_by_sqs("orders", 0) == self.receive_by_native("orders", 0) == []
        for _ in range(2):
            self.shop.leave(self.urls["orders"], "orders")
            self.await_receives(0)

    def await_receives(self, number: int) -> None:
        """Waits until so many receives wait at the service."""
        end = time.monotonic() + WITHIN_S
        while True:
            found = Metrics(self.service)
            waiting = found.of("leaseway_queue_waiting_receives", "queue", "tag")
            if found.sum("leaseway_receives_in_progress") == number == waiting.get(("orders", "default")):
                return
            assert time.monotonic() < end, waiting
            time.sleep(0.02)

    def change_while_one_waits(self) -> None:
        """A receive waits for a while, then its queue is changed, and what it waits for comes."""
        for receive, ack in ((self.receive_by_sqs, self.ack_by_sqs), (self.receive_by_native, self.ack_by_native)):
            found: list[str] = []
            waiting = threading.Thread(
                target=lambda receive=receive, found=found: found.extend(receive("orders", 20, slow=True))
            )
            waiting.start()
            self.await_receives(1)
            time.sleep(SLOW_S)
            changed = self.admin.patch("/v1/queues/orders", json={"retention_seconds": 100_000})
            assert changed.status_code == 200, changed.text
            self.shop.sqs("SendMessage", QueueUrl=self.urls["orders"], MessageBody="late")
            self._sent("orders", ["late"], 200)
            waiting.join()
            assert len(found) == 1
            ack("orders", found, 1)

    def fail(self) -> None:
        """Kafka does not answer for longer than a send may take."""
        kafka = self.up.run["kafka"]["pid"]
        stand_still(kafka)
        try:
            url = self.urls["fails"]
            by_sqs = threading.Thread(
                target=lambda: self.shop.sqs("SendMessage", slow=True, QueueUrl=url, MessageBody="unknown")
            )
            by_sqs.start()
            answer = self.shop.native("send", "fails", {"messages": [{"body": "unknown"}]}, slow=True)
            by_sqs.join()
        finally:
            os.kill(kafka, signal.SIGCONT)
        assert answer.status_code == 503, answer.text
        end = time.monotonic() + WITHIN_S
        while httpx.get(f"{self.service.endpoint}/ready", timeout=30).status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.2)

    def use_up(self) -> tuple[int, int]:
        """Sends until the quota of the day is used up. Returns how many bytes were taken, and how
        many are shown as used.
        """
        by, url, size = self.callers["capped"], self.urls["bounded"], 500
        assert self.admin.put("/v1/users/capped/quota", json={"daily_bytes": DAILY_BYTES}).status_code == 200
        taken = 0
        while by.sqs("SendMessage", QueueUrl=url, MessageBody="x" * size)["ResponseMetadata"]["HTTPStatusCode"] == 200:
            self._sent("bounded", ["x" * size], 200)
            taken += size
        while (status := by.native("send", "bounded", {"messages": [{"body": "x" * size}]}).status_code) == 200:
            self._sent("bounded", ["x" * size], 200)
            taken += size
        assert status == 429
        used: int = self.admin.get("/v1/users/capped").json()["used"]["bytes_today"]
        return taken, used

    def refuse(self) -> None:
        """Pages of other sites are refused, and who may not, or not any more while they wait."""
        for _ in range(2):
            answer = httpx.post(
                f"{self.service.endpoint}/v1/queues/orders/receive",
                json={"max": 1},
                headers={"origin": "http://elsewhere", "x-request-id": "page"},
            )
            assert answer.status_code == 403
            self.book.note("receive", 403, 0.0, slow=False)
        if not self.required:
            return
        stranger, url = self.callers["stranger"], self.urls["orders"]
        grant = "/v1/queues/orders/grants/stranger"
        assert self.admin.put(grant, json={"level": "receive"}).status_code == 200
        for _ in range(3):
            answer = stranger.sqs("ReceiveMessage", QueueUrl=url)
            assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200, answer
            self.book.meter("orders", "default", "short_receive_request", 0)
            time.sleep(0.5)
        told: list[int] = []
        waiting = threading.Thread(
            target=lambda: told.append(
                stranger.sqs("ReceiveMessage", slow=True, QueueUrl=url, WaitTimeSeconds=20)["ResponseMetadata"][
                    "HTTPStatusCode"
                ]
            )
        )
        waiting.start()
        self.await_receives(1)
        time.sleep(SLOW_S)
        assert self.admin.delete(grant).status_code in (200, 204)
        waiting.join()
        assert 400 <= told[0] < 500
        hidden = stranger.sqs("SendMessage", QueueUrl=url, MessageBody="x")["ResponseMetadata"]["HTTPStatusCode"]
        assert hidden == 400  # to a stranger there is no such queue
        assert stranger.native("send", "orders", {"messages": [{"body": "x"}]}).status_code == 404

    # What is known of it.

    def check_metrics(self) -> None:
        after = Metrics(self.service)
        ended = {
            key: int(number)
            for key, number in after.of("leaseway_requests_total", "verb", "status").items()
            if key[0] in HOT
        }
        assert ended == {key: number for key, number in self.book.ended.items() if key[0] in HOT}
        count = after.of("leaseway_request_seconds_count", "verb")
        seconds = after.of("leaseway_request_seconds_sum", "verb")
        quick = after.of("leaseway_request_seconds_bucket", "verb", "le")
        for verb in HOT:
            assert count[verb,] == sum(number for key, number in self.book.ended.items() if key[0] == verb)
            # Clocks differ a little.
            assert count[verb,] - quick[verb, "0.5"] >= self.book.slow[verb], (
                f"{verb}: a slow request counts as a quick one"
            )
            left = self.book.ended[verb, "499"]
            assert self.book.slow[verb] * SLOW_S * 0.98 <= seconds[verb,] <= self.book.seconds[verb] + left * SLOW_S, (
                verb
            )
        assert self.book.empty["orders", "default"] >= 4
        assert after.of("leaseway_queue_empty_receives_total", "queue", "tag") == self.book.empty
        sent_bytes = after.of("leaseway_queue_sent_bytes_total", "queue")
        for sizes in (sent_bytes, self.book.sent_bytes):
            del sizes["fails",]  # nobody knows what became of some of these
        assert sent_bytes == self.book.sent_bytes
        self.check_times(after)
        if self.plane:
            ways, before = (
                (now.sum("leaseway_plane_requests_total"), now.sum("leaseway_requests_total"))
                for now in (after, self.before)
            )
            assert ways[0] - before[0] == ways[1] - before[1], "each request went one way"
            by_plane = after.of("leaseway_plane_requests_total", "way")["plane",]
            assert by_plane >= (15 if self.required else 30), "the plane has served too little to say anything"
        assert after.sum("leaseway_redis_scripts_total") > self.before.sum("leaseway_redis_scripts_total") + 30

    def check_times(self, after: Metrics) -> None:
        queue, hand = "leaseway_time_in_queue_seconds", "leaseway_time_in_hand_seconds"
        assert after.sum(f"{queue}_count") == self.book.first
        assert after.of(f"{hand}_count", "verb") == {("ack",): self.book.acked, ("release",): self.book.released}
        assert self.book.released == 6
        # Clocks differ a little.
        assert after.of(f"{queue}_bucket", "le")["0.25",] <= self.book.first - 6
        assert after.of(f"{hand}_bucket", "verb", "le")["release", "0.25"] == 0
        assert after.of(f"{hand}_sum", "verb")["release",] >= 6 * HELD_S * 0.98

    def check_meters(self) -> None:
        day, end = datetime.now(UTC).date().isoformat(), time.monotonic() + WITHIN_S
        for queue in self.urls:
            due = {
                key[1:]: (number, self.book.messages[key])
                for key, number in self.book.requests.items()
                if key[0] == queue
            }
            while True:
                rows = self.admin.get(f"/v1/queues/{queue}/statistics", params={"day": day}).json()["rows"]
                found = {(row["tag"] or "", row["subject"]): (row["requests"], row["messages"]) for row in rows}
                found = {
                    key: value for key, value in found.items() if key[1] not in ("send_request", "receive_request")
                }
                if found == due or time.monotonic() > end:
                    break
                time.sleep(0.5)
            assert found == due, queue
            waits = [row["latency_max_ms"] for row in rows if row["subject"] == "long_receive_request"]
            assert queue != "orders" or waits[0] >= SLOW_S * 980

    def access(self) -> set[tuple[Any, ...]]:
        """What the access log says of answers to hot verbs, without what differs at any time; its
        ids are those of the answers.
        """
        assert self.service.log is not None
        lines = [json.loads(line) for line in self.service.log.read_text().splitlines() if line.startswith("{")]
        lines = [line for line in lines if line["logger"] == "leaseway.access" and line["verb"] in HOT]
        # Who has left was answered nothing. A page of another site is no client of the book's.
        answered = [line for line in lines if line["status"] != 499 and line["client_id"] != "page"]
        assert {line["request_id"] for line in answered} <= {*self.book.ids}
        by = Counter(line["by"] for line in answered)
        assert not self.plane or by["plane"] >= (15 if self.required else 30)
        assert self.plane or set(by) == {"python"}
        assert {line["peer"] for line in answered if line["status"] < 500} == {"127.0.0.1"}
        ended = Counter((line["verb"], str(line["status"])) for line in answered)
        others = [key for key in self.book.ended if key[0] not in HOT or key[1] == "499" or key == ("receive", "403")]
        assert ended == {key: n for key, n in self.book.ended.items() if key not in others}
        return {(line["verb"], line["status"], line["principal"], line["queue"], line["tag"]) for line in answered}

    def audit(self) -> list[tuple[Any, ...]]:
        """What is written down, without what differs at any time."""
        topic = audit_topic(self.prefix)
        consumer = Consumer({**self.up.kafka_client, "group.id": "none"})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)
            consumer.assign([TopicPartition(topic, 0, 0)])
            values = [message.value() for message in consumer.consume(end, 30)]
        finally:
            consumer.close()
        found = [decode(value) for value in values if value]
        assert len(found) == end
        lines = []
        for one in found:
            assert isinstance(one, AuditRecord)
            shown = "an id" if re.fullmatch("[0-9a-f-]{36}", one.request_id) else one.request_id
            lines.append(
                (
                    one.principal,
                    one.key_id,
                    one.peer,
                    one.operation,
                    one.verb,
                    one.queue,
                    one.tag,
                    one.outcome,
                    one.status,
                    one.error,
                    shown,
                )
            )
        return lines


@contextlib.contextmanager
def told(up: Up, tmp_path_factory: pytest.TempPathFactory, *, plane: bool, required: bool) -> Iterator[Story]:
    """The story of a service of its own."""
    prefix = f"{'plane' if plane else 'python'}-{'required' if required else 'open'}"
    settings = {**SETTINGS, "PLANE": "auto" if plane else "off"}
    for service in beside(up, prefix, settings, tmp_path_factory, auth="required" if required else "open"):
        story = Story(up, service, prefix, plane=plane, required=required)
        try:
            yield story
        finally:
            story.close()


@pytest.mark.parametrize("required", [False, True], ids=["open", "required"])
def test_figures_are_the_same_whichever_way_a_request_went(
    up: Up, tmp_path_factory: pytest.TempPathFactory, required: bool
) -> None:
    found: list[tuple[Any, ...]] = []
    for plane in (True, False):
        with told(up, tmp_path_factory, plane=plane, required=required) as story:
            story.begin()
            story.traffic()
            story.change_while_one_waits()
            story.refuse()
            quota = story.use_up()
            story.fail()
            story.check_metrics()
            story.check_meters()
            assert len(set(story.book.ids)) == len(story.book.ids)
            shapes = {re.sub(r"[0-9a-f]", "0", one) for one in story.book.ids}
            found.append(
                (
                    shapes,
                    quota,
                    story.audit(),
                    story.access(),
                    Metrics(story.service).families - BY_CHANCE - {"leaseway_plane_requests_total"},
                )
            )
    by_plane, by_python = found
    for one, other in zip(by_plane, by_python, strict=True):
        assert one == other
    assert by_plane[1] == (DAILY_BYTES, DAILY_BYTES)
    assert [line for line in by_plane[2] if line[7] == "refused"]
