"""The views of a warehouse in DuckDB's SQL, each as its Spark twin has it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from schemas.vocabulary import DEATHS
from spark.lake.answers.subset import NotCommon

Span = tuple[int | None, int | None]  # Epoch ms, from and to; None = no bound.
# The views that are tables as they are; which column `--from` and `--to` are about.
TIMES = {
    "messages": "sent_at", "journal": "logged_at", "meters": "minute", "requests": "minute", "audit": "at",
    "control": "logged_at", "undecodable": "at", "stale_handles": "minute", "lifecycles": "sent_at",
    "queue_minutes": "minute",
}  # fmt: skip
_MADE = "deliveries"  # Of the whole log: a span cuts what comes before and after a delivery too.
_QUEUES = """(SELECT * EXCLUDE (logged_at, log_partition, log_offset, deleted, place) FROM
  (SELECT *, row_number() OVER (PARTITION BY queue ORDER BY log_offset DESC) AS place FROM {control})
  WHERE place = 1 AND NOT deleted)"""
# As `rules.lifecycles.lives_of` has it.
_LIVES = """(SELECT l.*, CASE WHEN settled_how IS NOT NULL THEN settled_how WHEN last.how = 'open' THEN 'leased'
    WHEN coalesce(last.again_at, due_at) > now.at THEN 'delayed' ELSE 'ready' END AS state,
    epoch_ms(coalesce(settled_at, now.at)) - epoch_ms(sent_at) AS age_ms, coalesce(deliveries, 0) AS deliveries,
    first_received_at, last_received_at, last.how AS last_how
  FROM {lifecycles} l CROSS JOIN (SELECT make_timestamptz({as_of_ms} * 1000) AS at) now LEFT JOIN (
    SELECT incarnation, partition, tag_id, "offset", count(*)::INT AS deliveries, min(received_at) AS first_received_at,
      max(received_at) AS last_received_at, arg_max({{'how': how, 'again_at': again_at}}, nonce) AS last
    FROM {deliveries} GROUP BY ALL) d USING (incarnation, partition, tag_id, "offset"))"""
# As `rules.deliveries.dead_letters_ended` has it. The id of a message is an address there too.
_DEAD_LETTERS = """(SELECT m.queue, m.incarnation, m.partition, m."offset",
    concat_ws('/', m.incarnation, m.partition, m."offset") AS address, m.sent_at AS dead_at, origin.reason AS reason,
    origin.note AS note, q.queue AS source_queue, m.source_incarnation, origin.from_tag AS source_tag,
    ('0x' || substring(id, 16, 3))::INT AS source_partition,
    (('0x' || substring(id, 20, 4) || substring(id, 25, 8))::BIGINT >> 6) & 1099511627775 AS source_offset,
    origin.original_id AS original_id, origin.original_queue AS original_queue, origin.original_tag AS original_tag,
    CASE WHEN origin.original_sent_at_ms > 0 THEN make_timestamptz(origin.original_sent_at_ms * 1000) END
      AS original_sent_at,
    CASE WHEN origin.first_received_at_ms > 0 THEN make_timestamptz(origin.first_received_at_ms * 1000) END
      AS first_received_at,
    origin.receive_count AS receive_count, epoch_ms(m.sent_at) - origin.original_sent_at_ms AS lived_ms,
    m.body, m.body_text, m.body_bytes, m.attributes, m.sender, m."group", m.priority, l.settled_how, l.settled_at
  FROM (SELECT *, origin.from_id AS id, substring(id, 1, 8) || substring(id, 10, 4) AS source_incarnation
    FROM {messages} WHERE status = 'shown' AND origin.reason IN ({deaths})) m
  LEFT JOIN (SELECT * FROM {lifecycles} WHERE tag_id = 0) l USING (incarnation, partition, "offset")
  LEFT JOIN {queues} q ON q.incarnation = m.source_incarnation
  WHERE coalesce(l.settled_how, '') <> 'skipped')"""
# The columns of `usage_daily`: the sum of which column of COUNTS, of which measure.
USAGE = {"sent": ("messages", "sent"), "sent_bytes": ("bytes", "sent")} | {
    measure: ("messages", measure)
    for measure in ("arrived", "leased", "acked", "released", "lapsed", "dead", "moved", "expired", "deleted")
}
_SUMS = ", ".join(
    f"coalesce(sum({column}) FILTER (measure = '{measure}'), 0)::BIGINT AS {name}"
    for name, (column, measure) in USAGE.items()
)
_DAILY = "usage_daily"
_USAGE_DAILY = """(SELECT make_timestamp(epoch_us(minute))::DATE AS date, queue, tag, principal, {sums}
  FROM {queue_minutes} GROUP BY ALL)"""
_MADE_OF = {
    "queues": (_QUEUES, ("control",)),
    "lives": (_LIVES, ("lifecycles", "deliveries")),
    "dead_letters": (_DEAD_LETTERS, ("messages", "lifecycles", "queues")),
    _DAILY: (_USAGE_DAILY, ("queue_minutes",)),
}
_TIMES_MADE = {"lives": "sent_at", "dead_letters": "dead_at"}
VIEWS = (*TIMES, _MADE, *_MADE_OF)


def named_in(question: str) -> list[str]:
    """Those of VIEWS that a question in SQL names."""
    return [name for name in VIEWS if re.search(rf"\b{name}\b", question, re.IGNORECASE)]


def told_of(name: str, places: Mapping[str, str], as_of_ms: int | None, span: Span) -> str:
    """What a view has, in SQL; `places` say where the state of each table is. Raises NotCommon: its
    table is not there.
    """
    if name == _MADE and span != (None, None):
        raise NotCommon(f"{name} of a span")
    time = {**TIMES, **_TIMES_MADE}.get(name)
    if name in _MADE_OF:
        view, parts = _MADE_OF[name]
        within = span if name == _DAILY else (None, None)
        told = {part: told_of(part, places, as_of_ms, within) for part in parts}
        deaths = ", ".join(f"'{death}'" for death in DEATHS)
        return view.format(**told, as_of_ms=as_of_ms, deaths=deaths, sums=_SUMS) + _where(time, span)
    if name not in places:
        raise NotCommon(f"{name} is no table yet")
    return f"iceberg_scan('{places[name]}')" + _where(time, span)


def _where(time: str | None, span: Span) -> str:
    low, high = span
    told = [f"epoch_ms({time}) >= {low}"] if low is not None else []
    told += [f"epoch_ms({time}) < {high}"] if high is not None else []
    return f" WHERE {' AND '.join(told)}" if told and time else ""
