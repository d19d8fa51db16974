"""Records are decoded in threads, which may be the first to do so, and at once.

Whether two threads meet in what msgspec does at the first use of a struct is chance, and a process
has one first use: so a dozen processes try. Without the first use at import a third of them die.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
from schemas.records import JournalEntry, JournalRecord, OpenDelivery, SnapshotRecord, TagSnapshot
from schemas.wire import decode, encode

sys.setswitchinterval(1e-6)
delivery = OpenDelivery(1, 2, 3, 4, 0, 5)
kinds = {
    "journal": JournalRecord("q", "abc", 0, [JournalEntry(1, 1, "leased", 0, [1], [2], "")]),
    "snapshot": SnapshotRecord("q", "abc", 0, 1, 1, [TagSnapshot(0, 1, [2], [3], [delivery])], [], []),
}
data = encode(kinds[sys.argv[1]])
begin = threading.Barrier(8)

def work():
    begin.wait()
    for _ in range(5):
        assert decode(data) == kinds[sys.argv[1]]

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("kind", ["journal", "snapshot"])
def test_threads_that_decode_first_and_at_once_are_no_end_of_the_process(kind: str) -> None:
    started = [subprocess.Popen([sys.executable, "-c", PROGRAM, kind], stderr=subprocess.PIPE) for _ in range(12)]
    ended = [(one.communicate(timeout=60)[1].decode(), one.returncode) for one in started]

    assert ended == [("", 0)] * 12
