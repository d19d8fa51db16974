"""Which questions are made of what both engines mean alike."""

from __future__ import annotations

import duckdb
import pytest

from spark.lake.answers.subset import NotCommon, names_of, spelt


def names(query: str) -> list[str | None]:
    [serialized] = duckdb.execute("SELECT json_serialize_sql(?::VARCHAR)", [spelt(query)]).fetchone() or [""]
    return names_of(serialized)


COMMON = {
    "SELECT * FROM messages": [None],
    "SELECT queue, count(*), sum(m.size), max(at) FROM m GROUP BY 1": [None, "count(1)", "sum(size)", "max(at)"],
    "SELECT a FROM m WHERE a BETWEEN 1 AND 2 AND NOT b IS NULL OR c IN (1, 2) AND d NOT IN (SELECT e FROM n)": [None],
    "SELECT coalesce(a, b) AS c, CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS d FROM m": [None, None],
    "SELECT a FROM m WHERE at >= TIMESTAMP '2026-01-01' - INTERVAL 3 HOUR AND day(at) = 1": [None],
    "SELECT rank() OVER (PARTITION BY a ORDER BY b DESC) AS r FROM m": [None],
    "SELECT j.at, 'it''s at' AS y FROM j WHERE AT > now() ORDER BY j.at": [None, None],
    "SELECT offset, max(m.offset) FROM m GROUP BY offset LIMIT 2 OFFSET 1": [None, "max(offset)"],
    "SELECT DISTINCT a FROM m UNION ALL SELECT b FROM n ORDER BY 1 LIMIT 3": [None],
}  # fmt: skip
OTHER = {
    "SELECT a[1] AS x FROM m": "array_extract",
    "SELECT a['k'] AS x FROM m": "array_extract",
    "SELECT a / 2 AS x FROM m": "the function /",
    "SELECT cast(a AS INT) AS x FROM m": "a cast to INTEGER",
    "SELECT cast('1.5' AS DOUBLE) AS x FROM m": "a cast to DOUBLE",
    'SELECT "a" FROM m': "quotation marks",
    "SELECT a FROM m WHERE b LIKE 'x\\_y'": "a backslash",
    "SELECT regexp_replace(a, 'x', 'y') AS r FROM m": "the function regexp_replace",
    "SELECT concat(a, b) AS r FROM m": "the function concat",
    "SELECT count(DISTINCT a) FROM m": "a column without a name",
    "SELECT sum(a + 1) FROM m": "a column without a name",
    "SELECT a + 1 FROM m": "a column without a name",
    "SELECT a FROM read_csv('x')": "a function that gives a table",
    "SELECT 1 AS a; SELECT 2 AS b": "more than one statement",
    "SELECT a FROM `m`": "syntax error",
    "DROP TABLE m": "Only SELECT",
    "SELECT a FROM m WHERE b IN (SELECT x[1] AS y FROM n)": "array_extract",
    "SELECT list_transform(a, lambda x: x) AS b FROM m": "lambda|list_transform",
}  # fmt: skip


@pytest.mark.parametrize("query", COMMON)
def test_what_both_mean_alike_has_the_names_that_spark_gives(query: str) -> None:
    assert names(query) == COMMON[query]


@pytest.mark.parametrize("query", OTHER)
def test_what_may_mean_something_else_is_refused(query: str) -> None:
    with pytest.raises(NotCommon, match=OTHER[query]):
        names(query)
