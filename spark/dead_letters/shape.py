"""What a body looks like: its fields (JSON key paths with types), its shape, and the tokens by
which bodies are compared.

Built-in functions only.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE

MOST_DEPTH = 4  # Key paths go so deep; what is below is one value.
MOST_FIELDS = 200  # Of one body; the rest is not looked at.
MOST_CHARS = 4000  # Of a text that is no JSON object.
SHAPE_CHARS = 400
VALUE_CHARS = 40
CLASS_CHARS = 24
ATTRIBUTE = "@"  # First character of a field that is an attribute.

# What varies from message to message has one name each. Order matters: a time has numbers in it.
_MASKS = (
    (r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", "<uuid>"),
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "<ip>"),
    (r"[\w.+-]+@[\w-]+\.[\w.-]+", "<email>"),
    (r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b", "<hex>"),
    (r"\"[^\"]*\"|'[^']*'", "<quoted>"),
    (r"\d+(?:\.\d+)?", "<n>"),
    (r"\s+", " "),
)
_JSON_TYPES = (
    (r"BIGINT|DECIMAL\(\d+,\d+\)|DOUBLE|FLOAT", "number"),
    ("STRING", "string"),
    ("BOOLEAN", "boolean"),
    ("VOID", "null"),
    ("ARRAY", "array"),
    ("OBJECT", "object"),
)


def with_body(frame: DataFrame) -> DataFrame:
    """Adds to any frame with body, body_text, attributes what its bodies are made of; the grain
    stays.

    body_kind: json (an object) | text | binary | empty. fields: array of (path, type, value as
    text): the leaves of a JSON object, `a.b` for b in a, and the attributes that the sender gave as
    `@name`; arrays are leaves. shape: "a: number, b.c: string" of a JSON object, sorted; the masked
    text (at most 400 characters), or "binary 89504e47" with the first four bytes.
    """
    # A null body_text means bytes; text that is no JSON, or has a key twice, parses to null.
    parsed = frame.withColumn("_object", F.try_parse_json("body_text").try_cast("map<string,variant>"))
    kind = (
        F.when(F.coalesce(F.length("body"), F.lit(0)) == 0, "empty")
        .when(F.col("body_text").isNull(), "binary")
        .when(F.col("_object").isNotNull(), "json")
        .otherwise("text")
    )
    leaves = F.flatten(
        F.transform(F.map_entries("_object"), lambda entry: _leaves(entry["value"], entry["key"], MOST_DEPTH - 1))
    )
    body_fields = F.coalesce(F.slice(F.array_sort(leaves), 1, MOST_FIELDS), _no_fields())
    made = parsed.withColumn("body_kind", kind).withColumn("_body_fields", body_fields)
    with_shape = made.withColumn("shape", _shape()).withColumn("fields", F.concat("_body_fields", _attribute_fields()))
    return with_shape.drop("_object", "_body_fields")


def masked(text: Column) -> Column:
    """A text in which numbers, times, ids, addresses and quoted parts are one word each: `took <n>
    ms`.
    """
    text = F.substring(text, 1, MOST_CHARS)
    for pattern, word in _MASKS:
        text = F.regexp_replace(text, pattern, word)
    return F.trim(text)


def tokens() -> Column:
    """Tokens of a frame of `with_body`, distinct: array of (field, what), `what` being one of the
    things said of the field.

    `type number`, `like aa9` (letters a, digits 9, runs as one, or the size of a number: `like
    -10^3`), `= value` (up to 40 characters); of a text `word ...` without a field. No token tells
    of a binary body but its first bytes.
    """
    said = F.transform("fields", lambda f: F.filter(_said_of(f), lambda token: token["what"].isNotNull()))
    # An element of XML is a word, with what it holds: `<zip>12345</zip><id>7</id>` is two.
    text = F.regexp_replace(masked(F.col("body_text")), r"(</[^<>]*>|/>)<", "$1 <")
    words = F.filter(F.split(text, r"[\s,;:=()\[\]{}]+"), lambda word: F.length(word) > 1)
    of_text = F.transform(F.array_distinct(words), lambda word: _token(F.lit(""), F.concat(F.lit("word "), word)))
    of_binary = F.array(_token(F.lit(""), F.col("shape")))
    of_body = F.when(F.col("body_kind") == "text", of_text).when(F.col("body_kind") == "binary", of_binary)
    return F.array_distinct(F.concat(F.flatten(said), F.coalesce(of_body, _no_tokens())))


def _leaves(value: Column, path: Column, depth: int) -> Column:
    leaf = F.array(_field(path, _json_type(F.schema_of_variant(value)), value.cast("string")))
    if depth == 0:
        return leaf
    inner = value.try_cast("map<string,variant>")
    below = F.flatten(
        F.transform(
            F.map_entries(inner), lambda e: _leaves(e["value"], F.concat(path, F.lit("."), e["key"]), depth - 1)
        )
    )
    return F.when(F.size(inner) > 0, below).otherwise(leaf)


def _json_type(text: Column) -> Column:
    for pattern, word in _JSON_TYPES:
        text = F.regexp_replace(text, pattern, word)
    return text


def _attribute_fields() -> Column:
    def field(entry: Column) -> Column:
        kind = F.lower(F.element_at(F.split(entry["value"]["type"], r"\."), 1))
        text = F.when(kind != "binary", entry["value"]["value"].cast("string"))
        return _field(F.concat(F.lit(ATTRIBUTE), entry["key"]), kind, text)

    # What the engine adds to every dead letter tells of no cause, and would make all dead letters
    # alike.
    sent = F.filter(F.map_entries("attributes"), lambda entry: entry["key"] != SOURCE_QUEUE_ATTRIBUTE)
    return F.coalesce(F.transform(sent, field), _no_fields())


def _shape() -> Column:
    of_json = F.array_join(F.transform("_body_fields", lambda f: F.concat(f["path"], F.lit(": "), f["type"])), ", ")
    of_binary = F.concat(F.lit("binary "), F.lower(F.hex(F.substring("body", 1, 4))))
    kind = F.col("body_kind")
    shape = (
        F.when(kind == "json", of_json)
        .when(kind == "text", masked(F.col("body_text")))
        .when(kind == "binary", of_binary)
    )
    return F.coalesce(F.substring(shape, 1, SHAPE_CHARS), F.lit(""))


def _said_of(field: Column) -> Column:
    path, kind, value = field["path"], field["type"], field["value"]
    by_value = F.when(F.length(value) <= VALUE_CHARS, F.concat(F.lit("= "), value))
    like = F.when(kind == "number", _size_of(value)).when(kind == "string", _class_of(value))
    return F.array(
        _token(path, F.concat(F.lit("type "), kind)),
        _token(path, F.concat(F.lit("like "), like)),
        _token(path, by_value),
    )


def _size_of(number: Column) -> Column:
    value = number.try_cast("double")
    power = F.floor(F.log10(F.abs(value))).cast("string")
    sign = F.when(value < 0, "-").otherwise("")
    return F.when(value == 0, "0").otherwise(F.concat(sign, F.lit("10^"), power))


def _class_of(text: Column) -> Column:
    digits = F.regexp_replace(F.substring(text, 1, 200), r"\d+", "9")
    dead_letters = F.regexp_replace(digits, r"\p{L}+", "a")
    return F.when(text == "", "nothing").otherwise(
        F.substring(F.regexp_replace(dead_letters, r"(?:[a9]{2,})", "aa9"), 1, CLASS_CHARS)
    )


def _field(path: Column, kind: Column, value: Column) -> Column:
    return F.struct(path.alias("path"), kind.alias("type"), value.alias("value"))


def _token(field: Column, what: Column) -> Column:
    return F.struct(field.alias("field"), what.alias("what"))


def _no_fields() -> Column:
    return F.array().cast("array<struct<path:string,type:string,value:string>>")


def _no_tokens() -> Column:
    return F.array().cast("array<struct<field:string,what:string>>")
