"""What a mask leaves of a message, and that nothing it hides is left anywhere in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InvalidValue
from engine.rules.masks.mask import HIDDEN, Mask, check_mask
from schemas.records import Attribute, Message


def left(rules: list[str], body: str | bytes) -> Any:
    """What is shown of a body, as JSON."""
    data = body.encode() if isinstance(body, str) else body
    return json.loads(Mask(rules).hide(Message(data)).body)


CUSTOMER = (
    '{"customer": {"email": "a@b", "name": "Ann"}, "items": [{"iban": "DE1", "n": 1}, {"iban": null}], "sum": 1.10}'
)


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        (["customer.email"], {"customer": {"email": HIDDEN, "name": "Ann"}}),
        (["customer"], {"customer": HIDDEN}),
        (["customer.*"], {"customer": {"email": HIDDEN, "name": HIDDEN}}),
        (["items.*.iban"], {"items": [{"iban": HIDDEN, "n": 1}, {"iban": HIDDEN}]}),
        (["items.iban"], {"items": [{"iban": HIDDEN, "n": 1}, {"iban": HIDDEN}]}),
        (["items.0.iban"], {"items": [{"iban": HIDDEN, "n": 1}, {"iban": HIDDEN}]}),
        (["items.0"], {"items": [HIDDEN, HIDDEN]}),
        (["*.email"], {"customer": {"email": HIDDEN, "name": "Ann"}, "sum": HIDDEN}),
        (["sum.cents"], {"sum": HIDDEN}),
        (["customer.email.host"], {"customer": {"email": HIDDEN, "name": "Ann"}}),
        (["nothing", "customer.nothing"], {}),
        (["customer.0.email"], {"customer": {"email": HIDDEN, "name": "Ann"}}),
        (["customer.0"], {"customer": HIDDEN}),
        (["items.0.0.iban"], {"items": [{"iban": HIDDEN, "n": 1}, {"iban": HIDDEN}]}),
    ],
)
def test_a_path_hides_what_it_leads_to_and_what_it_cannot_follow(rules: list[str], shown: dict[str, Any]) -> None:
    assert left(rules, CUSTOMER) == {**json.loads(CUSTOMER), **shown}


def test_a_name_with_dots_is_found_too() -> None:
    body = '{"customer.email": "a", "customer": {"email.work": "b"}, "mail": {"customer.email": "c"}}'
    assert left(["customer.email.work", "customer.email", "*.customer.email"], body) == {
        "customer.email": HIDDEN,
        "customer": {"email.work": HIDDEN},
        "mail": {"customer.email": HIDDEN},
    }


def test_numbers_are_shown_as_they_were_sent() -> None:
    body = b'{"a": 1.10, "b": 12345678901234567890123, "c": 1e400, "card": 1}'
    assert Mask(["card"]).hide(Message(body)).body == b'{"a":1.10,"b":12345678901234567890123,"c":1E+400,"card":"***"}'


@pytest.mark.parametrize(
    "body",
    [
        b"", b"card=4711", b'"4711"', b"4711", b"{", b'{"card": 4711} {"card": 4711}', b'{"card": NaN}',
        b"\xef\xbb\xbf" + b'{"card": 4711}', '{"card": "4711"}'.encode("utf-16"), b'{"a": "\xff4711"}',
        b"[" * 100_000 + b"4711" + b"]" * 100_000, b'{"a":' * 100_000 + b"4711" + b"}" * 100_000,
        b"[" * 900 + b"4711" + b"]" * 900, b'{"n": ' + b"4711" * 5_000 + b"}",
    ],
)  # fmt: skip
def test_a_body_that_is_no_json_object_or_list_is_hidden_whole(body: bytes) -> None:
    shown = Mask(["card"]).hide(Message(body, body_is_text=False))
    assert b"4711" not in shown.body
    assert shown.body_is_text


@pytest.mark.parametrize(
    "body",
    [
        '{"card": "4711", "card": 1}', '{"card": 1, "card": "4711"}', '{"c\\u0061rd": "4711"}',
        '{"a": {"card": "4711"}, "a": null}', '{"card": ["4711", {"x": "4711"}]}', '[[{"card": "4711"}]]',
        '{"card":"4711"}\n', '  {"card" : "4711"}',
    ],
)  # fmt: skip
def test_a_value_is_hidden_however_the_body_is_written(body: str) -> None:
    assert b"4711" not in Mask(["card", "a.card"]).hide(Message(body.encode())).body


def test_the_whole_body_and_attributes_have_rules_of_their_own() -> None:
    attributes = {"email": Attribute("string.mail", b"a@b"), "kind": Attribute("number", b"1")}
    message = Message(b'{"a": 1}', attributes)
    whole = Mask(["*"]).hide(message)
    assert (whole.body, whole.attributes) == (HIDDEN.encode(), attributes)
    some = Mask(["attribute:email"]).hide(message)
    assert (some.body, some.attributes) == (message.body, {**attributes, "email": Attribute("string", b"***")})
    every = Mask(["attribute:*", "*"]).hide(message)
    assert {one.value for one in every.attributes.values()} == {b"***"}


def test_no_digest_of_a_hidden_body_is_left() -> None:
    body = b'{"card": "4711"}'
    made = Message(body, group="g", dedup_id=hashlib.sha256(body).hexdigest())
    for digest in (hashlib.md5, hashlib.sha1, hashlib.sha256):
        for dedup_id in (digest(body).hexdigest(), digest(body).hexdigest().upper()):
            assert Mask(["card"]).hide(msgspec.structs.replace(made, dedup_id=dedup_id)).dedup_id is None
    assert Mask(["attribute:x"]).hide(made).dedup_id == made.dedup_id
    assert Mask(["card"]).hide(Message(body, dedup_id="order-7")).dedup_id == "order-7"


@pytest.mark.parametrize("rule", ["*", "card", "a.*.b", "attribute:*", "attribute:a.b", "with space", "a-b", "x" * 200])
def test_rules_that_may_be_set(rule: str) -> None:
    check_mask([rule])


@pytest.mark.parametrize(
    "rule", ["", ".", "a.", ".a", "a..b", "$.card", "/a/b", "a[0]", "a[*].b", "attribute:", "a\n", "x" * 201]
)
def test_rules_that_would_hide_nothing_are_refused(rule: str) -> None:
    with pytest.raises(InvalidValue, match=r"mask: a rule is \*"):
        check_mask(["card", rule])


class Secrets:
    """Values that occur nowhere else."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        return f"s{self.made:04d}t"


_names = st.sampled_from(["a", "b", "c", "0", "x y"])
_tree = st.recursive(
    st.sampled_from(["text", "number", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=12,
)


def _filled(shape: Any, secret: Callable[[], str]) -> Any:
    """A value of a shape whose leaves are told apart."""
    if isinstance(shape, dict):
        return {name: _filled(one, secret) for name, one in shape.items()}
    if isinstance(shape, list):
        return [_filled(one, secret) for one in shape]
    if shape == "null":
        return None
    return secret() if shape == "text" else int("9" + secret()[1:-1])


def _leaves(value: Any) -> Iterator[str]:
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    if parts is None:
        yield from () if value is None else (str(value),)
        return
    for one in parts:
        yield from _leaves(one)


def _reached(value: Any, path: list[str]) -> Iterator[str]:
    """The leaves that a path means, by the words of the reference."""
    if not path or not isinstance(value, dict | list):
        yield from _leaves(value)
        return
    if isinstance(value, dict):
        for name, one in value.items():
            if path[0] in ("*", name):
                yield from _reached(one, path[1:])
        if path[0] == "0" and "0" not in value:
            yield from _reached(value, path[1:])
        return
    for one in value:
        yield from _reached(one, path[1:] if path[0] in ("*", "0") else path)


@given(_tree, st.lists(st.lists(_names | st.just("*"), min_size=1, max_size=4), min_size=1, max_size=3), st.booleans())
def test_no_hidden_value_is_left_and_every_other_one_is(shape: Any, paths: list[list[str]], wide: bool) -> None:
    value = _filled(shape, Secrets())
    body = json.dumps(value, indent=3 if wide else None).encode()
    shown = Mask([".".join(path) for path in paths]).hide(Message(body)).body.decode()
    hidden = {leaf for path in paths for leaf in _reached(value, path)}
    if ["*"] in paths or not isinstance(value, dict | list):
        hidden = set(_leaves(value))
    assert {leaf for leaf in _leaves(value) if leaf in shown} == set(_leaves(value)) - hidden
