"""Retention in MNS: a message ends as long after its send as its queue says, whatever its delay."""

from __future__ import annotations

import time

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.mns.raw import Raw
from tests.services import Up

RETENTION_S = 60  # the least that MNS takes
DELAY_S = 50


@pytest.mark.long
def test_a_message_ends_its_retention_after_its_send(raw: Raw, up: Up | Running, name: str) -> None:
    raw.done(
        "PUT",
        f"/queues/{name}",
        f"<Queue><MessageRetentionPeriod>{RETENTION_S}</MessageRetentionPeriod></Queue>",
        status=201,
    )
    queues = f"{up.endpoint}/v1/queues"
    httpx.post(queues, json={"name": f"{name}-due", "retention_seconds": RETENTION_S}).raise_for_status()

    def send(queue: str, body: str, delay_s: int) -> None:
        raw.send(queue, body, f"<DelaySeconds>{delay_s}</DelaySeconds>")

    send(name, "now", 0)
    send(name, "later", DELAY_S)
    send(f"{name}-due", "later", DELAY_S)
    sent = time.monotonic()
    received = raw.receive(name, 30)
    assert received.text("MessageBody") == "now"
    handle = received.text("ReceiptHandle")
    raw.done("PUT", f"/queues/{name}/messages?receiptHandle={handle}&visibilityTimeout=1")

    time.sleep(max(0.0, sent + RETENTION_S + 1 - time.monotonic()))
    gone = raw.ask("GET", f"/queues/{name}/messages?waitseconds=2")
    assert (gone.status, gone.code) == (404, "MessageNotExist")
    (tag,) = httpx.get(f"{queues}/{name}").json()["tags"]
    assert (tag["ready"], tag["delayed"], tag["leased"]) == (0, 0, 0)
    # In a queue whose retention counts from when a message is due, the same send is there.
    assert raw.receive(f"{name}-due", 30).text("MessageBody") == "later"
