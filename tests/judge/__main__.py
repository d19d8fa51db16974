"""Judges a history again: `python -m tests.judge HISTORY.jsonl [SECONDS]`. SECONDS: within which
service has to be back after a fault, 60 unless given. Exit status 1 = a promise was broken.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.judge.checkers import check
from tests.judge.history import read
from tests.judge.report import printed, report
from tests.judge.story import Story

if __name__ == "__main__":
    story = Story(read(Path(sys.argv[1])))
    told = report(story, check(story, float(sys.argv[2]) if len(sys.argv) > 2 else 60.0))
    print(printed(told))
    sys.exit(0 if told["held"] else 1)
