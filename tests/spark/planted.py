"""Dead letters with causes planted among them, made by the service itself: sent, received, and
killed by their consumer.

Two queues. In `mixed` five formats come together, and each has one cause of its own; in `orders`
all is JSON, and the causes are one thing each beside which the dead letters differ as real ones do:
ids, times, amounts, regions, optional fields, attributes.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import random
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.spark.drive import Person

NOISE, GOOD = "noise", "good"
NOISE_SHARE = 0.1
BATCH = 100
CONSUMERS = 4
PATIENCE_S = 120
REGIONS = ("eu", "us", "ap", "sa")
# Cause -> share of the dead letters that are no noise.
MIXED = {
    "json without customer": 30, "csv with text for amount": 25, "xml with an empty zip": 20, "binary of another "
        "kind": 15,
    "host not reached": 10,
}  # fmt: skip
ORDERS = {"no such currency": 40, "amount is text": 25, "no customer": 15, "no zip code": 12, "host not reached": 8}
CAUSES = {"mixed": MIXED, "orders": ORDERS}


def plant(endpoint: str, queue: str, dead_letters: int, seed: int = 1) -> dict[str, str]:
    """Sends as many good messages as bad ones, acks the good ones and kills the others; message id
    -> cause of what was killed.

    Returns when the dead-letter queue has all of them.
    """
    chance = random.Random(seed)
    causes = [_cause(chance, CAUSES[queue]) for _ in range(dead_letters)] + [GOOD] * dead_letters
    chance.shuffle(causes)
    with contextlib.closing(Person(endpoint, "olga")) as olga:
        olga.call("POST", "/v1/queues", {"name": f"{queue}.dead", "partitions": 2})
        policy = {"dead_letter_queue": f"{queue}.dead", "max_receive_count": 5}
        olga.call(
            "POST", "/v1/queues", {"name": queue, "partitions": 2, "lease_seconds": 300, "redrive_policy": policy}
        )
        sent: dict[str, str] = {}
        for part in _parts(causes):
            messages = [_message(chance, queue, cause) for cause in part]
            answer = olga.call("POST", f"/v1/queues/{queue}/messages", {"messages": messages})
            sent.update(zip((message["id"] for message in answer["messages"]), part, strict=True))
        with ThreadPoolExecutor(CONSUMERS) as pool:
            done = sum(pool.map(lambda _: _consume(endpoint, queue, sent), range(CONSUMERS)))
        assert done == len(sent), f"{done} of {len(sent)} came"
        end = time.monotonic() + PATIENCE_S
        while olga.call("GET", f"/v1/queues/{queue}.dead")["tags"][0]["backlog"] < dead_letters:
            assert time.monotonic() < end, f"no {dead_letters} dead letters came"
            time.sleep(0.2)
    return {message: cause for message, cause in sent.items() if cause != GOOD}


def _consume(endpoint: str, queue: str, causes: dict[str, str]) -> int:
    """Acks what is good and kills the rest until nothing comes; how many came."""
    seen = 0
    with contextlib.closing(Person(endpoint, "olga")) as olga:
        while got := olga.call("POST", f"/v1/queues/{queue}/receive", {"max": BATCH, "wait_seconds": 1})["messages"]:
            seen += len(got)
            for verb, ours in (("ack", True), ("kill", False)):
                handles = [message["handle"] for message in got if (causes[message["id"]] == GOOD) is ours]
                if handles:
                    results = olga.call("POST", f"/v1/queues/{queue}/{verb}", {"handles": handles})["results"]
                    assert {result["status"] for result in results} == {"ok"}, results
    return seen


def _parts(rows: list[str]) -> Iterator[list[str]]:
    of = iter(rows)
    while part := list(itertools.islice(of, BATCH)):
        yield part


def _cause(chance: random.Random, causes: dict[str, int]) -> str:
    return NOISE if chance.random() < NOISE_SHARE else chance.choices(list(causes), weights=list(causes.values()))[0]


def _message(chance: random.Random, queue: str, cause: str) -> dict[str, Any]:
    body = (_mixed_body if queue == "mixed" else _order_body)(chance, cause)
    attributes = {"channel": chance.choice(("web", "app", "shop"))}
    content = {"body": body} if isinstance(body, str) else {"body_base64": base64.b64encode(body).decode()}
    return {**content, "attributes": attributes}


# mixed: five formats.


def _mixed_body(chance: random.Random, cause: str) -> str | bytes:
    made = _good if cause == GOOD else _MIXED[cause]
    return made(chance)


def _good(chance: random.Random) -> str | bytes:
    made: _Made = chance.choices((_json, _csv, _xml, _packed, _line), weights=(5, 2, 2, 1, 1))[0]
    return made(chance)


def _json_without_customer(chance: random.Random) -> str:
    order = _order(chance)
    del order["customer"]
    return json.dumps(order)


def _json(chance: random.Random) -> str:
    return json.dumps(_order(chance))


def _csv(chance: random.Random, amount: str = "") -> str:
    row = (
        str(chance.randint(1, 10**9)),
        chance.choice(("EUR", "USD", "GBP")),
        amount or f"{chance.uniform(1, 900):.2f}",
    )
    return ",".join((*row, chance.choice(REGIONS), f"2026-03-{chance.randint(1, 28):02d}"))


def _xml(chance: random.Random, zip_code: str = "") -> str:
    zip_code = zip_code or f"<zip>{chance.randint(10_000, 99_999)}</zip>"
    about = f"<id>{chance.getrandbits(64):016x}</id><country>{chance.choice(('DE', 'FR', 'US'))}</country>{zip_code}"
    return f'<?xml version="1.0"?>\n<order region="{chance.choice(REGIONS)}">\n  {about}\n</order>'


def _packed(chance: random.Random, head: bytes = b"PK\x01\xfe") -> bytes:
    return (
        head + struct.pack(">QdH", chance.getrandbits(64), chance.uniform(1, 900), chance.randint(0, 9)) + b"\xff\xfe"
    )


def _line(chance: random.Random) -> str:
    return (
        f"INFO 2026-03-01 10:{chance.randint(10, 59)}:07 order {chance.randint(1, 10**6)} packed by robot "
        f"{chance.randint(1, 40)}"
    )


# orders: JSON alone.


def _order_body(chance: random.Random, cause: str) -> str | bytes:
    if cause == NOISE:
        return _noise(chance)
    if cause == "host not reached":
        return _lost_host(chance)
    order = _order(chance)
    if cause == "no such currency":
        order["currency"] = "XXX"
        order["region"] = chance.choice((*REGIONS, "eu", "eu", "eu"))
    elif cause == "amount is text":
        order["amount"] = f"{order['amount']} {chance.choice(('EUR', 'USD'))}"
    elif cause == "no customer":
        del order["customer"]
    elif cause == "no zip code":
        order["ship"]["zip"] = ""
    return json.dumps(order)


def _order(chance: random.Random) -> dict[str, Any]:
    """What the queue is for."""
    order: dict[str, Any] = {
        "id": f"{chance.getrandbits(128):032x}",
        "at": f"2026-03-{chance.randint(1, 28):02d}T10:{chance.randint(0, 59):02d}:00Z",
        "customer": chance.randint(1, 500_000),
        "amount": round(chance.uniform(1, 900), 2),
        "currency": chance.choice(("EUR", "USD", "GBP", "JPY")),
        "ship": {"zip": f"{chance.randint(10_000, 99_999)}", "country": chance.choice(("DE", "FR", "US", "JP"))},
        "lines": [{"sku": chance.randint(1, 99), "n": 1} for _ in range(chance.randint(1, 4))],
        "region": chance.choice(REGIONS),
    }
    if chance.random() < 0.3:
        order["coupon"] = f"C{chance.randint(1, 9999)}"
    if chance.random() < 0.1:
        order["gift"] = True
    return order


def _lost_host(chance: random.Random) -> str:
    host = ".".join(str(chance.randint(1, 254)) for _ in range(4))
    tail = chance.choice(("", f" (node {chance.randint(1, 40)})", " giving up"))
    at = f"2026-03-01 10:{chance.randint(10, 59)}:07.{chance.randint(0, 999)}"
    return f"ERROR {at} could not reach {host}:5432 after {chance.randint(2, 9)} tries{tail}"


def _noise(chance: random.Random) -> str | bytes:
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 9))) for _ in range(chance.randint(2, 9))]
    kind = chance.randrange(4)
    if kind == 0:
        return " ".join(words)
    if kind == 1:
        return b"\xff" + chance.randbytes(chance.randint(8, 60))
    return json.dumps(dict.fromkeys(words, chance.randint(0, 9))) if kind == 2 else _json(chance)


_Made = Callable[[random.Random], str | bytes]
_MIXED: dict[str, _Made] = {
    NOISE: _noise,
    "json without customer": _json_without_customer,
    "csv with text for amount": lambda chance: _csv(chance, f"{chance.randint(1, 900)} Euro"),
    "xml with an empty zip": lambda chance: _xml(chance, "<zip/>"),
    "binary of another kind": lambda chance: _packed(chance, b"\x1f\x8b\x08\x00"),
    "host not reached": _lost_host,
}
