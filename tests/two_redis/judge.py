"""What a book must not have in it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.two_redis.book import Book, Delivered

# Acks that a loss of Redis may forget were answered so shortly before it (docs: promises), or until
# the life of before was given up everywhere.
FORGOTTEN_BEFORE_S = 1.0
LOADED_BEFORE_S = 5.0
FORGOTTEN_AFTER_S = 4.0
# The load average of the last minute from which on a machine of two cores is loaded.
LOADED = 10.0
# Between the answer of Redis and the moment at which a client has read the worker's.
READ_S = 0.15


@dataclass
class Verdict:
    """What is broken, in words, and figures for people."""

    broken: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def expect(self, is_right: bool, text: str) -> None:
        if not is_right:
            self.broken.append(text)


def judge(book: Book, lives: list[float], load: float) -> Verdict:
    """`lives`: when another life of Redis came, or was to come, into use; `load`: the load average
    meanwhile.
    """
    verdict = Verdict()
    by_uid: dict[str, list[Delivered]] = defaultdict(list)
    for delivered in book.deliveries:
        by_uid[delivered.uid].append(delivered)
    lost = [uid for uid in book.sent if uid not in by_uid]
    verdict.expect(not lost, f"{len(lost)} answered sends were never delivered: {lost[:5]}")
    phantoms = [uid for uid in by_uid if uid not in book.sent and uid not in book.doubtful]
    verdict.expect(not phantoms, f"{len(phantoms)} deliveries of what nobody sent: {phantoms[:5]}")
    verdict.expect(not book.wrong, f"{len(book.wrong)} wrong answers: {book.wrong[:3]}")
    _judge_acks(book, by_uid, lives, LOADED_BEFORE_S if load >= LOADED else FORGOTTEN_BEFORE_S, verdict)
    verdict.figures.update(sent=len(book.sent), deliveries=len(book.deliveries), acked=len(book.acked))
    return verdict


def _judge_acks(
    book: Book, by_uid: dict[str, list[Delivered]], lives: list[float], before_s: float, verdict: Verdict
) -> None:
    durable, early = [], []
    # When those that were forgotten were answered, from the nearest coming of a life on.
    away: list[float] = []
    for uid, (_, answered) in book.acked.items():
        again = [d for d in by_uid[uid] if d.began > answered]
        if not again:
            continue
        away.append(min((answered - at for at in lives), key=abs, default=0.0))
        if again[0].queue == "durable":
            durable.append(uid)
        elif not any(at - before_s <= answered <= at + FORGOTTEN_AFTER_S for at in lives):
            early.append((uid, [round(answered - at, 2) for at in lives]))
    verdict.expect(not durable, f"{len(durable)} durable acks were forgotten: {durable[:5]}")
    verdict.expect(not early, f"{len(early)} acks were forgotten that no bound allows: {early[:5]}")
    verdict.figures.update(
        forgotten_from_s=round(min(away, default=0), 2), forgotten_to_s=round(max(away, default=0), 2)
    )
    verdict.figures.update(acks_forgotten=len(away), durable_acks=sum(uid.startswith("durable/") for uid in book.acked))


def judge_split(book: Book, old: int, new: int, since: float, until: float, verdict: Verdict) -> None:
    """Between these times worker `old` reaches the old life only, and `new` the new one only."""
    news = [d.at for d in book.deliveries if d.worker == new and d.began > since + 0.05]
    first = min(news, default=0.0)
    verdict.expect(0 < first < until, "the new life was not in use before the split was over")
    late = [d for d in book.deliveries if d.worker == old and first + READ_S < d.at < until]
    verdict.expect(
        not late,
        f"{len(late)} deliveries of the old life, up to {max((d.at - first for d in late), default=0):.2f} s "
        "after the new one",
    )
    verdict.figures["new_life_after_s"] = round(first - since, 2)
