"""Which tokens tell of a cause: those that dead letters of a queue have far more often than its
succeeded messages of the same format.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.dead_letters.shape import tokens, with_body
from spark.frames.session import held

FIELD, WHAT = "field", "what"
FORMAT = "format "  # Of the token that names a body's format, as no other token begins.
LEAST_DEAD_LETTERS = 10  # A token of fewer dead letters of its queue and format, or
LEAST_SHARE = 0.002  # of a smaller share of them, is chance.
LIFT = 4.0  # So many times as frequent among dead letters as among the succeeded.
EXPECTED_SHARE = 0.98  # A field of so many succeeded messages of one format is missed where it is not.
FEW_SUCCEEDED = 100  # Fewer succeeded messages of a queue tell nothing about the values of its fields.
ABSENT = "is not there"
_SEEN = ("body_kind", "fields", "shape")
_LIKE = ["_source", "body_kind"]
_PART = ["_source", "_part"]


def with_marks(dead_letters: DataFrame, succeeded: DataFrame) -> DataFrame:
    """Adds body_kind, shape and marks to DEAD_LETTERS; one row per dead letter.

    marks: array of (field, what, usual), `usual` being the share (0..1) of the succeeded messages
    of its source queue and of its body_kind that have it, null = there are none; with fewer than
    100 of them only fields, types and words are marks. Like is compared with like: what all JSON
    has tells nothing of a queue that has other formats too; that a format itself dies far more
    often is a mark of its own. No marks: the dead letter looks as what succeeds does, or as no
    other does.
    """
    good = succeeded.select(F.col("queue").alias("_source"), "body", "body_text", "attributes")
    source = F.coalesce("source_queue", "original_queue", F.lit(""))
    # Looking into bodies is the costly part and each is needed several times: once each, then kept
    # beside the executors.
    seen_good = held(with_body(good).select("_source", *_SEEN, tokens().alias("_tokens")))
    looked = with_body(dead_letters)
    seen_dead = held(looked.select(*dead_letters.columns, *_SEEN, source.alias("_source"), tokens().alias("_tokens")))
    expected = F.broadcast(_expected(seen_good))
    seen_good, seen_dead = (frame.join(expected, on=_LIKE, how="left") for frame in (seen_good, seen_dead))
    whole = F.concat("_tokens", _missed(), F.array(_format()))
    seen_good, seen_dead = (frame.withColumn("_tokens", whole) for frame in (seen_good, seen_dead))
    markers = held(_markers(seen_dead, seen_good))
    of_dead_letter = seen_dead.join(F.broadcast(markers), on=_LIKE, how="left")
    marks = F.filter(
        "_markers", lambda t: F.array_contains("_tokens", F.struct(t[FIELD].alias(FIELD), t[WHAT].alias(WHAT)))
    )
    return of_dead_letter.withColumn("marks", F.coalesce(marks, no_marks())).select(
        *dead_letters.columns, "body_kind", "shape", "marks"
    )


def _format() -> Column:
    return F.struct(F.lit("").alias(FIELD), F.concat(F.lit(FORMAT), F.col("body_kind")).alias(WHAT))


def _missed() -> Column:
    """Tokens of expected fields that a body does not have."""
    there = F.transform("fields", lambda f: f["path"])
    missed = F.transform(
        F.array_except("_expected", there), lambda p: F.struct(p.alias(FIELD), F.lit(ABSENT).alias(WHAT))
    )
    return F.coalesce(missed, F.array().cast("array<struct<field:string,what:string>>"))


def _expected(good: DataFrame) -> DataFrame:
    """_source, body_kind, _expected: the fields that nearly every succeeded message of a queue and
    format has.
    """
    sizes = good.groupBy(*_LIKE).agg(F.count("*").alias("_all"))
    paths = good.select(*_LIKE, F.explode(F.array_distinct(F.transform("fields", lambda f: f["path"]))).alias("_path"))
    counted = paths.groupBy(*_LIKE, "_path").agg(F.count("*").alias("_has")).join(sizes, on=_LIKE)
    usual = counted.where(F.col("_has") >= F.col("_all") * EXPECTED_SHARE)
    return usual.groupBy(*_LIKE).agg(F.collect_list("_path").alias("_expected"))


def _markers(dead: DataFrame, good: DataFrame) -> DataFrame:
    """_source, body_kind, _markers: array of (field, what, usual)."""
    frequent = (
        _counts(dead, "_dead")
        .join(F.broadcast(_sizes(dead, "_dead_all")), on=_PART)
        .where(F.col("_dead") >= _least("_dead_all"))
    )
    both = frequent.join(_counts(good, "_good"), on=[*_PART, FIELD, WHAT], how="left")
    compared = both.join(F.broadcast(_sizes(good, "_good_all")), on=_PART, how="left").na.fill(
        0, ["_good", "_good_all"]
    )
    # One more on the good side: what was never seen may still be there, the less the more was seen.
    expected = (F.col("_good") + 1) / (F.col("_good_all") + 1)
    telling = F.col("_dead") / F.col("_dead_all") >= LIFT * expected
    unknown = (F.col("_good_all") < FEW_SUCCEEDED) & ~F.col(WHAT).startswith("= ") & ~F.col(WHAT).startswith("like ")
    usual = F.when(F.col("_good_all") > 0, F.col("_good") / F.col("_good_all"))
    kind = F.when(F.col("_part") == "", F.expr(f"substring({WHAT}, {len(FORMAT) + 1})")).otherwise(F.col("_part"))
    kept = compared.where(telling | unknown).withColumn("body_kind", kind)
    return kept.groupBy(*_LIKE).agg(F.collect_list(F.struct(FIELD, WHAT, usual.alias("usual"))).alias("_markers"))


def _counts(frame: DataFrame, name: str) -> DataFrame:
    """Tokens counted within their format; the format itself within its queue."""
    exploded = frame.select(*_LIKE, F.explode("_tokens").alias("_token")).select(*_LIKE, "_token.*")
    part = F.when(F.col(WHAT).startswith(FORMAT), "").otherwise(F.col("body_kind")).alias("_part")
    return exploded.groupBy("_source", part, FIELD, WHAT).agg(F.count("*").alias(name))


def _sizes(frame: DataFrame, name: str) -> DataFrame:
    """_source, _part: of each format, and '' = of the queue as a whole."""
    parts = F.explode(F.array("body_kind", F.lit(""))).alias("_part")
    return frame.select("_source", parts).groupBy(*_PART).agg(F.count("*").alias(name))


def _least(all_dead_letters: str) -> Column:
    return F.greatest(F.lit(LEAST_DEAD_LETTERS), F.col(all_dead_letters) * LEAST_SHARE)


def no_marks() -> Column:
    """The marks of a dead letter that nothing sets apart."""
    return F.array().cast("array<struct<field:string,what:string,usual:double>>")
