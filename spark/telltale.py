"""Which tokens tell of a cause: those that dead letters of a queue have far more often than its succeeded messages.

Neighbours: `shape.py` makes tokens, `clusters.py` compares them. Must not know what a cluster is.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.shape import tokens, with_body

FIELD, WHAT = "field", "what"
LEAST_LETTERS = 10  # A token of fewer letters of its queue, or
LEAST_SHARE = 0.002  # of a smaller share of them, is chance.
LIFT = 4.0  # So many times as frequent among dead letters as among the succeeded.
EXPECTED_SHARE = 0.98  # A field of so many succeeded messages is missed where it is not.
FEW_SUCCEEDED = 100  # Fewer succeeded messages of a queue tell nothing about the values of its fields.
ABSENT = "is not there"
_SEEN = ("body_kind", "fields", "shape")


def with_marks(letters: DataFrame, succeeded: DataFrame) -> DataFrame:
    """Adds body_kind, shape and marks to DEAD_LETTERS; one row per letter.

    marks: array of (field, what, usual), `usual` being the share (0..1) of the succeeded messages of its source queue that have
    it, null = there are none; with fewer than 100 of them only fields, types and words are marks. No marks: the letter looks as what
    succeeds does, or as no other does.
    """
    good = succeeded.select(F.col("queue").alias("_source"), "body", "body_text", "attributes")
    source = F.coalesce("source_queue", "original_queue", F.lit(""))
    # Looking into bodies is the costly part and each is needed several times: once each, then kept beside the executors.
    seen_good = with_body(good).select("_source", *_SEEN, tokens().alias("_tokens")).localCheckpoint()
    seen_dead = with_body(letters).select(*letters.columns, *_SEEN, source.alias("_source"), tokens().alias("_tokens")).localCheckpoint()
    expected = F.broadcast(_expected(seen_good))
    seen_good, seen_dead = (frame.join(expected, on="_source", how="left") for frame in (seen_good, seen_dead))
    seen_good, seen_dead = (frame.withColumn("_tokens", F.concat("_tokens", _missed())) for frame in (seen_good, seen_dead))
    telltale = _telltale(seen_dead, seen_good).localCheckpoint()
    of_letter = seen_dead.join(F.broadcast(telltale), on="_source", how="left")
    marks = F.filter("_telltale", lambda t: F.array_contains("_tokens", F.struct(t[FIELD].alias(FIELD), t[WHAT].alias(WHAT))))
    return of_letter.withColumn("marks", F.coalesce(marks, no_marks())).select(*letters.columns, "body_kind", "shape", "marks")


def _missed() -> Column:
    """Tokens of expected fields that a JSON object does not have."""
    there = F.transform("fields", lambda f: f["path"])
    missed = F.transform(F.array_except("_expected", there), lambda p: F.struct(p.alias(FIELD), F.lit(ABSENT).alias(WHAT)))
    of_json = F.when(F.col("body_kind") == "json", missed)
    return F.coalesce(of_json, F.array().cast("array<struct<field:string,what:string>>"))


def _expected(good: DataFrame) -> DataFrame:
    """_source, _expected: the fields that nearly every succeeded message of a queue has."""
    sizes = good.groupBy("_source").agg(F.count("*").alias("_all"))
    paths = good.select("_source", F.explode(F.array_distinct(F.transform("fields", lambda f: f["path"]))).alias("_path"))
    counted = paths.groupBy("_source", "_path").agg(F.count("*").alias("_has")).join(sizes, on="_source")
    usual = counted.where(F.col("_has") >= F.col("_all") * EXPECTED_SHARE)
    return usual.groupBy("_source").agg(F.collect_list("_path").alias("_expected"))


def _telltale(dead: DataFrame, good: DataFrame) -> DataFrame:
    """_source, _telltale: array of (field, what, usual)."""
    sizes = dead.groupBy("_source").agg(F.count("*").alias("_dead_all"))
    goods = good.groupBy("_source").agg(F.count("*").alias("_good_all"))
    frequent = _counts(dead, "_dead").join(F.broadcast(sizes), on="_source").where(F.col("_dead") >= _least("_dead_all"))
    both = frequent.join(_counts(good, "_good"), on=["_source", FIELD, WHAT], how="left")
    compared = both.join(F.broadcast(goods), on="_source", how="left").na.fill(0, ["_good", "_good_all"])
    # One more on the good side: what was never seen may still be there, the less the more was seen.
    expected = (F.col("_good") + 1) / (F.col("_good_all") + 1)
    telling = F.col("_dead") / F.col("_dead_all") >= LIFT * expected
    unknown = (F.col("_good_all") < FEW_SUCCEEDED) & ~F.col(WHAT).startswith("= ") & ~F.col(WHAT).startswith("like ")
    usual = F.when(F.col("_good_all") > 0, F.col("_good") / F.col("_good_all"))
    kept = compared.where(telling | unknown)
    return kept.groupBy("_source").agg(F.collect_list(F.struct(FIELD, WHAT, usual.alias("usual"))).alias("_telltale"))


def _counts(frame: DataFrame, name: str) -> DataFrame:
    exploded = frame.select("_source", F.explode("_tokens").alias("_token"))
    return exploded.groupBy("_source", f"_token.{FIELD}", f"_token.{WHAT}").agg(F.count("*").alias(name))


def _least(all_letters: str) -> Column:
    return F.greatest(F.lit(LEAST_LETTERS), F.col(all_letters) * LEAST_SHARE)


def no_marks() -> Column:
    """The marks of a letter that nothing sets apart."""
    return F.array().cast("array<struct<field:string,what:string,usual:double>>")
