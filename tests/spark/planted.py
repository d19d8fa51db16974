"""A set of dead letters with causes planted in it, and messages of the same queue that succeeded.

The causes are told apart by one thing each, beside which the letters differ as real ones do: ids, times, amounts, regions,
optional fields, attributes. Neighbours: `test_letters_clusters.py`, `benchmarks/letters.py`.
"""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.columns import DEAD_LETTERS, MESSAGES
from tests.spark.rows import BEGIN, INCARNATION, frame

NOISE = "noise"
CAUSES = ("no such currency", "amount is text", "no customer", "no zip code", "host not reached")
NOISE_SHARE = 0.1
REGIONS = ("eu", "us", "ap", "sa")


def planted(spark_session: SparkSession, count: int, seed: int = 1) -> tuple[DataFrame, DataFrame]:
    """(`count` DEAD_LETTERS whose `group` names the cause, half as many MESSAGES that succeeded)."""
    chance = random.Random(seed)
    letters = [_letter(chance, place, _cause(chance)) for place in range(count)]
    good = [_row(chance, place, json.dumps(_order(chance))) | {"queue": "orders"} for place in range(count // 2)]
    return frame(spark_session, DEAD_LETTERS, *letters), frame(spark_session, MESSAGES, *good)


def found(clustered: DataFrame) -> tuple[float, dict[str, float]]:
    """(purity: share of the letters in clusters that are of their cluster's main cause, cause -> share that one cluster holds)."""
    counted = clustered.groupBy("cluster", F.col("group").alias("cause")).count()
    rows = [(row["cluster"], row["cause"], row["count"]) for row in counted.toLocalIterator()]
    main: dict[int, tuple[int, str]] = {}
    for cluster, cause, letters in rows:
        if cluster is not None:
            main[cluster] = max(main.get(cluster, (0, "")), (letters, cause))
    inside = sum(letters for cluster, _, letters in rows if cluster is not None)
    held: dict[str, float] = {}
    for letters, cause in main.values():
        whole = sum(n for _, of, n in rows if of == cause)
        held[cause] = max(held.get(cause, 0.0), letters / whole)
    return sum(letters for letters, _ in main.values()) / inside, held


def _cause(chance: random.Random) -> str:
    if chance.random() < NOISE_SHARE:
        return NOISE
    return chance.choices(CAUSES, weights=(40, 25, 15, 12, 8))[0]


def _letter(chance: random.Random, place: int, cause: str) -> dict[str, Any]:
    row = _row(chance, place, _body(chance, cause))
    dead_at = BEGIN + timedelta(seconds=place)
    return row | {
        "queue": "orders-dlq",
        "source_queue": "orders",
        "source_tag": "default",
        "reason": "exhausted",
        "address": f"{INCARNATION}/0/{place}",
        "dead_at": dead_at,
        "group": cause,
        "lived_ms": 60_000,
    }


def _row(chance: random.Random, place: int, text: str) -> dict[str, Any]:
    attributes = {"channel": {"type": "string", "value": chance.choice((b"web", b"app", b"shop"))}}
    body = text.encode()
    return {"partition": 0, "offset": place, "body": body, "body_text": text, "body_bytes": len(body), "attributes": attributes}


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


def _body(chance: random.Random, cause: str) -> str:
    if cause == "host not reached":
        host = ".".join(str(chance.randint(1, 254)) for _ in range(4))
        tail = chance.choice(("", f" (node {chance.randint(1, 40)})", " giving up"))
        at = f"2026-03-01 10:{chance.randint(10, 59)}:07.{chance.randint(0, 999)}"
        return f"ERROR {at} could not reach {host}:5432 after {chance.randint(2, 9)} tries{tail}"
    if cause == NOISE:
        return _noise(chance)
    order = _order(chance)
    if cause == "no such currency":
        order["currency"] = "XXX"
        order["region"] = chance.choice((*REGIONS, "eu", "eu", "eu"))
    elif cause == "amount is text":
        order["amount"] = f"{order['amount']} {chance.choice(('EUR', 'USD'))}"
    elif cause == "no customer":
        del order["customer"]
    else:
        order["ship"]["zip"] = ""
    return json.dumps(order)


def _noise(chance: random.Random) -> str:
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(3, 9))) for _ in range(chance.randint(2, 9))]
    kind = chance.randrange(3)
    if kind == 0:
        return " ".join(words)
    return json.dumps(dict.fromkeys(words, chance.randint(0, 9))) if kind == 1 else json.dumps(_order(chance))
