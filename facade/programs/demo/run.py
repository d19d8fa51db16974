"""The order of events: a service, a queue with its tags, the traffic, the account."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from urllib.parse import quote

from facade.programs.demo.account import MOST_RECEIVES, Outcome, Tag, checks
from facade.programs.demo.airports import FILE, PACIFIC, Directory, Distances, rows, source
from facade.programs.demo.client import Client, Json
from facade.programs.demo.errors import DemoError, Interrupted
from facade.programs.demo.flow import Duty, Flow
from facade.programs.demo.own_stack import own_stack
from facade.programs.demo.page import account_page

ADDS_UP, DIFFERS, REFUSED, INTERRUPTED = 0, 1, 2, 130
STUCK_S = 20.0
COUNTS_S = 10.0
TAGS = (Tag("all", "every row", None), Tag("pacific", f"state is one of {' '.join(PACIFIC)}", PACIFIC))


def main(arguments: Sequence[str] = ()) -> int:
    """`run` with options as words."""
    parser = argparse.ArgumentParser(
        prog="leaseway demo", description="Stream a real data set through a queue and show what went where."
    )
    add_arguments(parser)
    return run(parser.parse_args(arguments))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `run`."""
    parser.add_argument("--endpoint", help="URL of a running Leaseway (default: start one, in a temporary folder)")
    parser.add_argument("--key", metavar="ID:SECRET", help="access key, when the endpoint asks for one")
    parser.add_argument("--queue", default="airports", help="name of the queue to create (default airports)")


def run(given: argparse.Namespace) -> int:
    """Run the demo. 0: the account adds up, 1: it doesn't, 2: it could not be run (one line on
    stderr), 130: interrupted.
    """
    began = time.monotonic()
    try:
        with _interruptible():
            source()  # before anything is started
            if given.endpoint:
                status = _demo(given.endpoint, given.key, given.queue, "given by --endpoint")
                _say(f"\nThe queues {given.queue} and {given.queue}-dlq are still there. Look at the dead letters:")
                _say(f"  curl -sS '{given.endpoint}/v1/queues/{given.queue}-dlq/messages?limit=3'")
                return status
            _say("Starting a Leaseway for this run (Kafka, Redis and the facade in a temporary folder) ...")
            with own_stack() as endpoint:
                return _demo(endpoint, None, given.queue, f"started for this run in {time.monotonic() - began:.1f} s")
    except DemoError as error:
        sys.stderr.write(f"leaseway demo: {error}\n")
        return REFUSED
    except Interrupted:
        sys.stderr.write("leaseway demo: interrupted\n")
        return INTERRUPTED


def _demo(endpoint: str, key: str | None, queue: str, whence: str) -> int:
    dead_letter_queue = f"{queue}-dlq"
    directory = Directory()
    duties = (
        Duty("directory-1", "all", directory, lease_s=30.0, back_off_s=0.5),
        Duty("directory-2", "all", directory, lease_s=30.0, back_off_s=0.5),
        Duty("distances", "pacific", Distances(), lease_s=2.0, back_off_s=None),
    )
    with contextlib.closing(Client(endpoint, key)) as client:
        _create(client, queue, dead_letter_queue)
        _say(_opening(endpoint, whence, queue, dead_letter_queue, duties))
        flow = Flow(lambda: Client(endpoint, key), queue, rows(), duties)
        try:
            flow.start()
            dead_letters = _watch(client, flow, dead_letter_queue)
        finally:
            flow.stop()
        outcome = Outcome(dead_letter_queue, TAGS, flow.sent, flow.tallies, dead_letters, _backlogs(client, queue))
    verdicts = checks(outcome)
    _say("\n" + account_page(outcome, verdicts))
    holds = all(check.holds for check in verdicts)
    _say("\nIt adds up." if holds else "\nIt does NOT add up.")
    return ADDS_UP if holds else DIFFERS


def _create(client: Client, queue: str, dead_letter_queue: str) -> None:
    for name in (queue, dead_letter_queue):
        if client.status(f"/v1/queues/{quote(name, safe='')}") == 200:
            raise DemoError(f"queue {name} is there already; delete it, or give --queue another name")
    client.call("POST", "/v1/queues", {"name": dead_letter_queue})
    policy = {"dead_letter_queue": dead_letter_queue, "max_receive_count": MOST_RECEIVES}
    client.call("POST", "/v1/queues", {"name": queue, "redrive_policy": policy})
    for tag in TAGS:
        wanted = [{"name": "state", "type": "string", "value": state} for state in tag.states or ()]
        client.call(
            "POST",
            f"/v1/queues/{queue}/tags",
            {
                "name": tag.name,
                "start_at_ms": 0,
                "filter": {"operator": "OR", "conditions": wanted} if wanted else None,
            },
        )


def _watch(client: Client, flow: Flow, dead_letter_queue: str) -> list[Json]:
    """Follows the traffic until all is settled, or nothing has moved for 20 s; the dead letters.
    Raises DemoError of a thread.
    """
    began = moved_at = time.monotonic()
    seen: object = None
    spoke_at = began - 1
    while True:
        sent_all = flow.sent.ended > 0.0
        dead_letters = client.browse(dead_letter_queue)
        dead = {
            tag.name: sum(1 for dead_letter in dead_letters if dead_letter["origin"]["from_tag"] == tag.name)
            for tag in TAGS
        }
        wanted = {tag.name: sum(1 for row in list(flow.sent.rows.values()) if tag.wants(row)) for tag in TAGS}
        over = sent_all and all(flow.settled(name) + dead[name] >= wanted[name] for name in wanted)
        now = time.monotonic()
        if flow.error:
            raise flow.error
        if (state := (flow.progress, len(dead_letters))) != seen:
            seen, moved_at = state, now
        if over or now - spoke_at >= 1:
            spoke_at = now
            tags = "   ".join(f"{name}: {flow.settled(name):>5,} acked {dead[name]:>3} dead" for name in wanted)
            _say(f"  {now - began:4.1f} s   sent {len(flow.sent.rows):>5,}   {tags}")
        if over or now - moved_at > STUCK_S:
            return dead_letters
        time.sleep(0.1)


def _backlogs(client: Client, queue: str) -> dict[str, int]:
    """What the service says is left under each tag; its count follows the last ack within
    moments.
    """
    end = time.monotonic() + COUNTS_S
    while True:
        found = {tag["name"]: int(tag["backlog"]) for tag in client.call("GET", f"/v1/queues/{queue}/tags")["tags"]}
        if not any(found[tag.name] for tag in TAGS) or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _opening(endpoint: str, whence: str, queue: str, dead_letter_queue: str, duties: Sequence[Duty]) -> str:
    consumers = {tag.name: ", ".join(duty.name for duty in duties if duty.tag == tag.name) for tag in TAGS}
    return "\n".join(
        [
            "",
            f"  data      {FILE} of the package vega-datasets: airports of the United States, as they ship",
            f"  service   {endpoint}, {whence}",
            (
                f"  queue     {queue}; after {MOST_RECEIVES} deliveries without an ack a message goes to "
                f"{dead_letter_queue}"
            ),
            *(f"  tag       {tag.name}: {tag.about}; received by {consumers[tag.name]}" for tag in TAGS),
            "            (the tag `default`, which every queue has, is not used here)",
            "",
        ]
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise Interrupted once, so that what was started is stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        for asked in numbers:
            signal.signal(asked, signal.SIG_IGN)  # the clean-up is not to be interrupted
        raise Interrupted

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
