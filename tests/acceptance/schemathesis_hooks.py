"""Steers schemathesis: half of the requests name a queue and a message that exist, and no receive
waits long.
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis

# Not the names of the document's examples: those are deleted by the example of a deletion.
QUEUES = ("fuzzed", "fuzzed-dead")
LONGEST_WAIT_S = 0.1


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Random names are never those of queues, so without this nothing behind the first look-up
    would be reached.
    """
    # Deleting the queues or purging the message would end that, and schemathesis learns names from
    # replies.
    known: tuple[str, ...] = QUEUES
    if case.path.endswith("/purge") or (case.method == "DELETE" and case.path == "/v1/queues/{queue}"):
        known = ()
        if isinstance(case.path_parameters, dict) and case.path_parameters.get("queue") in QUEUES:
            case.path_parameters["queue"] = "not-fuzzed"
    replace_odd(case.path_parameters, "queue", known)
    if replace_odd(case.path_parameters, "message", (os.environ.get("FUZZ_MESSAGE", "none"),)) and known:
        case.path_parameters["queue"] = QUEUES[0]
    for place in (case.query, case.body):
        replace_odd(place, "tag", ("default",))
    shorten_wait(case.body)


def replace_odd(place: Any, name: str, known: tuple[str, ...]) -> bool:
    """Puts one of `known` in place of a random text of odd length; whether it did."""
    given = place.get(name) if isinstance(place, dict) else None
    if not known or not isinstance(given, str) or len(given) % 2 == 0:
        return False
    place[name] = known[len(given) // 2 % len(known)]
    return True


def shorten_wait(body: Any) -> None:
    """A wait is legal up to 60 s, which the time of this test is too short for; what is illegal
    stays as it is.
    """
    wait = body.get("wait_seconds") if isinstance(body, dict) else None
    if isinstance(wait, int | float) and not isinstance(wait, bool) and LONGEST_WAIT_S < wait <= 60:
        body["wait_seconds"] = LONGEST_WAIT_S
