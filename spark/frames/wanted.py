"""What a question can see of each view, by its WHERE, ON and HAVING: which queues, and from when to
when. So topics and offsets are chosen before anything is read.

The question is planned over empty views of the same columns. Catalyst pushes its conditions down to
them, through joins and subqueries too; what stands on a view there holds for every row that the
question sees of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark.frames.columns import FRAMES
from spark.frames.source import ALL, Span

# The column of each view that says when its record was appended, or at most an hour before.
TIMES = {
    "messages": "sent_at", "deliveries": "sent_at", "dead_letters": "dead_at", "lives": "sent_at", "meters": "minute",
    "stale_handles": "minute", "requests": "minute", "audit": "at"
}  # fmt: skip
_VIEWS = {tuple(shape.names): name for name, shape in FRAMES.items()}
_LOWER, _UPPER = ("GreaterThan", "GreaterThanOrEqual", "EqualTo"), ("LessThan", "LessThanOrEqual", "EqualTo")


@dataclass(frozen=True)
class Wanted:
    """What is seen of a view: rows for which `queues` (a condition in SQL over `queue`) is true,
    with times in `span`. None = of all queues.
    """

    queues: str | None = None
    span: Span = ALL

    def names(self, spark_session: SparkSession, known: list[str]) -> list[str] | None:
        """Those of the `known` queues for which the condition is true; None = there is no condition
        that can be asked without reading. Names of topics have no quotes.
        """
        if self.queues is None or not known:
            return None
        rows = ", ".join(f"('{name}')" for name in known)
        try:
            every = spark_session.sql(f"SELECT queue FROM VALUES {rows} AS known(queue)")  # noqa: S608
            return [str(row["queue"]) for row in every.where(self.queues).collect()]
        except PySparkException:  # what Catalyst has made of it can't be said in SQL
            return None

    def either(self, other: Wanted) -> Wanted:
        """What is seen by one of two: a view that is named twice is read once for both."""
        queues = f"({self.queues}) OR ({other.queues})" if self.queues and other.queues else None
        lows, highs = (self.span.from_ms, other.span.from_ms), (self.span.to_ms, other.span.to_ms)
        low = None if None in lows else min(ms for ms in lows if ms is not None)
        high = None if None in highs else max(ms for ms in highs if ms is not None)
        return Wanted(queues, Span(low, high))


def empty_views(spark_session: SparkSession, names: Collection[str] = tuple(FRAMES)) -> None:
    """Makes each of these frames a temporary view without rows, of which the optimizer does not
    know that.
    """
    context: Any = spark_session.sparkContext
    session: Any = spark_session._jsparkSession  # noqa: SLF001 - PySpark can't make such a frame
    for name in names:
        shape = session.parseDataType(FRAMES[name].json())
        frame = session.createDataFrame(context._jsc.emptyRDD(), shape)  # noqa: SLF001
        DataFrame(frame, spark_session).createOrReplaceTempView(name)


def plan_of(question: DataFrame) -> Any:
    """The plan of a frame over `empty_views`, for `wanted_of`."""
    return question._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - PySpark has no plans


def plan_of_sql(spark_session: SparkSession, query: str) -> Any:
    """The plan of a statement over `empty_views`, which is not run, whatever it is; of EXPLAIN that
    of what is explained. Raises AnalysisException, ParseException: the statement is wrong.
    """
    state: Any = spark_session._jsparkSession.sessionState()  # noqa: SLF001 - as above
    jvm: Any = spark_session._jvm  # noqa: SLF001
    plan = state.sqlParser().parsePlan(query)
    if _kind(plan) == "ExplainCommand":
        plan = plan.logicalPlan()
    skip = jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return state.executePlan(plan, skip).optimizedPlan()


def wanted_of(plan: Any) -> dict[str, Wanted]:
    """What a question over `empty_views` sees of each; a view that is not here is not seen at
    all.
    """
    found: dict[str, Wanted] = {}
    for columns, condition in _leaves(plan, None):
        name = _VIEWS.get(columns)
        if name is not None:
            seen = _seen(name, condition)
            found[name] = found[name].either(seen) if name in found else seen
    return found


def _leaves(plan: Any, condition: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The columns of each frame that is read, and the condition that stands on it."""
    if _kind(plan) == "LogicalRDD":
        yield tuple(str(column.name()) for column in _each(plan.output())), condition
    below = plan.condition() if _kind(plan) == "Filter" else None
    for child in _each(plan.children()):
        yield from _leaves(child, below)
    for inner in _each(plan.subqueries()):
        yield from _leaves(inner, None)


def _seen(name: str, condition: Any) -> Wanted:
    if condition is None:
        return Wanted()
    low: int | None = None
    high: int | None = None
    for term in _terms(condition):
        kind, ms = _bound(term, TIMES.get(name, ""))
        if ms is not None:
            low = max(low or 0, ms) if kind in _LOWER else low
            high = min(high or ms + 1, ms + 1) if kind in _UPPER else high
    return Wanted(_about_queues(condition), Span(low, high))


def _terms(condition: Any) -> Iterator[Any]:
    """The conditions that all hold."""
    if _kind(condition) == "And":
        yield from _terms(condition.left())
        yield from _terms(condition.right())
    else:
        yield condition


def _bound(term: Any, column: str) -> tuple[str, int | None]:
    """A comparison of a column with a constant time: its kind, as if the column were on the left,
    and the time in epoch ms.
    """
    kind = _kind(term)
    if kind not in (*_LOWER, *_UPPER):
        return kind, None
    left, right = term.left(), term.right()
    if _kind(left) == "Literal":
        left, right = right, left
        kind = {"Greater": "Less" + kind[7:], "LessTha": "Greater" + kind[4:]}.get(kind[:7], kind)
    if _kind(left) != "AttributeReference" or str(left.name()) != column or _kind(right) != "Literal":
        return kind, None
    micros = right.value()
    return kind, micros // 1000 if isinstance(micros, int) else None


def _about_queues(condition: Any) -> str | None:
    """What a condition says of `queue` alone, in SQL; it holds wherever the condition does."""
    if _kind(condition) in ("And", "Or"):
        sides = [_about_queues(side) for side in (condition.left(), condition.right())]
        told = [side for side in sides if side is not None]
        if _kind(condition) == "Or":
            return f"({told[0]} OR {told[1]})" if len(told) == 2 else None
        return " AND ".join(f"({side})" for side in told) or None
    columns = list(_each(condition.references().toSeq()))
    if {str(column.name()) for column in columns} != {"queue"} or not condition.deterministic():
        return None
    # Catalyst says whose column it is, under the names of the question; texts are left as they are.
    spelt = "|".join({re.escape(str(column.sql())) for column in columns})
    return re.sub(rf"('(?:[^'\\]|\\.)*')|{spelt}", lambda found: found[1] or "queue", str(condition.sql()))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))
