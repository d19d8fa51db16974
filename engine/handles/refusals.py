"""Handles whose deliveries are over: what is answered, by the words of the scripts; counted by the
reason, and written down one by one at level debug.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from engine.rules.queue import Queue
from engine.shapes import EntryResult
from schemas.identity import Handle
from schemas.vocabulary import GONE, STATUS_OF, EntryStatus, StaleReason

logger = logging.getLogger(__name__)

METRIC: Final = "stale_handles_total"


class Refusals:
    """Takes note of each handle that was good for nothing. Any task may call.

    `count(incarnation, reason)` counts it for the meters.
    """

    def __init__(self, count: Callable[[str, str], None]) -> None:
        self._count = count
        # By the name of the metric with its label.
        self.counts: Counter[str] = Counter()

    def note(self, queue: Queue, partition: int, refused: Iterable[tuple[int, str]]) -> None:
        """Takes note of handles of one partition: the offset of each, and a StaleReason word."""
        for offset, reason in refused:
            self.counts[f'{METRIC}{{reason="{reason}"}}'] += 1
            self._count(queue.incarnation, reason)
            logger.debug("action=stale queue=%s partition=%d offset=%d reason=%s", queue.name, partition, offset, reason)

    def judge(
        self, queue: Queue, texts: Sequence[str], handles: Sequence[Handle], words: Sequence[str], over: EntryStatus = EntryStatus.STALE
    ) -> list[EntryResult]:
        """Returns what became of handles, by the words of the scripts, and takes note of those
        whose deliveries are over. `over`: the status where the message is not gone, as the caller
        tells it apart.
        """
        results = []
        for text, handle, word in zip(texts, handles, words, strict=True):
            if word == EntryStatus.OK:
                results.append(EntryResult(text, word))
                continue
            self.note(queue, handle.partition, ((handle.offset, word),))
            reason = StaleReason(word)
            status = STATUS_OF[reason]
            if status is EntryStatus.STALE and reason not in GONE:
                status = over
            results.append(EntryResult(text, status.value, reason=word))
        return results

    def judge_timed(
        self,
        queue: Queue,
        texts: Sequence[str],
        handles: Sequence[Handle],
        results: Sequence[tuple[str, int]],
        over: EntryStatus = EntryStatus.STALE,
    ) -> list[EntryResult]:
        """As `judge`, of words with the times when the messages are receivable next."""
        judged = self.judge(queue, texts, handles, [word for word, _ in results], over)
        return [replace(one, next_visible_at_ms=time) if time else one for one, (_, time) in zip(judged, results, strict=True)]
