"""What KEDA's scaler `aws-sqs-queue` reads: three numbers of GetQueueAttributes, of which it makes
the length of a queue.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

VISIBLE, NOT_VISIBLE, DELAYED = (f"ApproximateNumberOfMessages{name}" for name in ("", "NotVisible", "Delayed"))
ALL = (VISIBLE, NOT_VISIBLE, DELAYED)
SENT = 240


def read(sqs: Any, queue: str) -> tuple[int, int, int]:
    """As the scaler asks: these attributes by name, each a whole number."""
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=list(ALL))["Attributes"]
    assert found.keys() == set(ALL)
    visible, flying, delayed = (int(found[name]) for name in ALL)
    return visible, flying, delayed


@contextmanager
def looking(sqs: Any, queue: str, seen: list[tuple[int, int, int]]) -> Iterator[None]:
    """Reads the numbers again and again beside what is done within."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.append(read(sqs, queue))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_the_numbers_of_the_scaler_add_up_at_rest_and_never_exceed_what_was_sent(sqs: Any, queue: str) -> None:
    seen: list[tuple[int, int, int]] = []
    with looking(sqs, queue, seen):
        # A third is due at once, a third in some minutes, a third beyond the window.
        for delay_s in (0, 200, 800):
            for start in range(0, SENT // 3, 10):
                entries = [
                    {"Id": str(n), "MessageBody": f"{delay_s}-{n}", "DelaySeconds": delay_s}
                    for n in range(start, start + 10)
                ]
                assert not sqs.send_message_batch(QueueUrl=queue, Entries=entries).get("Failed")
        handles: list[str] = []
        while len(handles) < 50:
            more = min(10, 50 - len(handles))
            got = sqs.receive_message(
                QueueUrl=queue, MaxNumberOfMessages=more, WaitTimeSeconds=5, VisibilityTimeout=600
            )
            handles += [one["ReceiptHandle"] for one in got.get("Messages", ())]
        for handle in handles[:20]:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=handle)
        for handle in handles[20:25]:
            sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=0)

    # 80 were due: 50 were received, of which 20 are deleted and 5 given back.
    assert read(sqs, queue) == (35, 25, 160)
    assert seen
    assert all(min(numbers) >= 0 and sum(numbers) <= SENT for numbers in seen)
