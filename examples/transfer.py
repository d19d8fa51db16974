"""A producer with a database of its own: a row and a message, both or neither, though it may die at
any line.

    python examples/transfer.py pay --database bank.db --amount 40
    python examples/transfer.py check --database bank.db

`pay` prepares the message, writes the row, then commits the message (or rolls it back, when the row
is refused). `check` is a member of the same producer group: it answers the service's questions
about messages of which nobody has said what became, by looking for the row. Run one beside the
producers; when `pay` dies after the row is written, `check` commits its message.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sqlite3
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any


class Service:
    """The calls of a transaction."""

    def __init__(self, endpoint: str) -> None:
        self._url = f"{endpoint.rstrip('/')}/v1"

    def call(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """POST. Raises OSError: for commit and rollback, call again, or leave it to the checks."""
        data = json.dumps(body or {}).encode()
        request = urllib.request.Request(f"{self._url}/{path}", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=90) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


def open_database(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS transfers (id TEXT PRIMARY KEY, amount INTEGER CHECK (amount <= 100))")
    return database


def pay(service: Service, given: argparse.Namespace) -> None:
    """One transfer."""
    transfer = {"id": secrets.token_hex(8), "amount": given.amount}
    half = service.call(
        f"queues/{given.queue}/transactions",
        {
            "producer_group": given.group,
            "check_immunity_seconds": given.immunity,
            "messages": [{"body": json.dumps(transfer)}],
        },
    )
    outcome = "commit"
    try:
        with open_database(given.database) as database:
            database.execute("INSERT INTO transfers VALUES (:id, :amount)", transfer)
    except sqlite3.IntegrityError:
        outcome = "rollback"
    if given.die:
        os.kill(os.getpid(), signal.SIGKILL)
    done = service.call(f"transactions/{half['id']}/{outcome}")
    print(f"{transfer['id']}: {done['status']}", flush=True)


def check(service: Service, given: argparse.Namespace) -> None:
    """Answers questions until none came for `--wait` seconds."""
    database = open_database(given.database)
    while asked := service.call(f"producer-groups/{given.group}/checks", {"max": 10, "wait_seconds": given.wait})[
        "checks"
    ]:
        for one in asked:
            transfer = json.loads(one["messages"][0]["body"])["id"]
            # No row: the producer has died before it, or is about to write it. It must not be: the
            # immunity is longer than a transfer takes.
            made = database.execute("SELECT 1 FROM transfers WHERE id = ?", (transfer,)).fetchone()
            done = service.call(f"transactions/{one['transaction']['id']}/{'commit' if made else 'rollback'}")
            print(f"{transfer}: {done['status']}", flush=True)
    database.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["pay", "check"])
    parser.add_argument("--endpoint", default="http://127.0.0.1:9400")
    parser.add_argument("--queue", default="transfers")
    parser.add_argument("--group", default="bank", help="the producer group")
    parser.add_argument("--database", required=True)
    parser.add_argument("--amount", type=int, default=1, help="more than 100 is refused by the database")
    parser.add_argument("--immunity", type=float, default=5, help="seconds in which a transfer is made surely")
    parser.add_argument("--die", action="store_true", help="die when the row is written, before the answer")
    parser.add_argument("--wait", type=float, default=20, help="seconds to wait for a question")
    given = parser.parse_args(arguments)
    (pay if given.what == "pay" else check)(Service(given.endpoint), given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
