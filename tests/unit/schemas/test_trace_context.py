"""Trace contexts: which texts are one, and how a message has it in each dialect."""

from __future__ import annotations

import pytest

from schemas.records import Attribute
from schemas.records.trace_context import TraceContext, of_attributes, of_w3c, of_xray, shown

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
W3C = f"00-{TRACE}-{SPAN}-01"
XRAY = f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=1"
OTHER = f"00-{TRACE}-{SPAN[::-1]}-00"
CONTEXT = TraceContext(TRACE, SPAN, 1)


def text(value: str, type: str = "string") -> Attribute:
    return Attribute(type, value.encode("latin-1"))


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        (W3C, 1),
        (f"00-{TRACE}-{SPAN}-00", 0),
        (f"00-{TRACE}-{SPAN}-ff", 255),
        (f"cc-{TRACE}-{SPAN}-01", 1),
        (f"01-{TRACE}-{SPAN}-01-of-a-later-version", 1),
    ],
)
def test_traceparents(given: str, flags: int) -> None:
    assert of_w3c(given) == TraceContext(TRACE, SPAN, flags)


@pytest.mark.parametrize(
    "given",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"01-{TRACE}-{SPAN}-01-{'x' * 512}",
        XRAY,
    ],
)
def test_texts_that_are_no_traceparent(given: str) -> None:
    assert of_w3c(given) is None


def test_a_state_goes_with_its_context_unless_it_is_too_long() -> None:
    assert of_w3c(W3C, "a=b,c=d") == TraceContext(TRACE, SPAN, 1, "a=b,c=d")
    assert of_w3c(W3C, "a=" + "b" * 511) == CONTEXT


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        (XRAY, 1),
        (f"Sampled=0; Parent={SPAN} ;Root=1-{TRACE[:8]}-{TRACE[8:]}", 0),
        (f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=?;Lineage=a:1", 0),
        (f"Self=x;Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN}", 0),
    ],
)
def test_xray_headers(given: str, flags: int) -> None:
    assert of_xray(given) == TraceContext(TRACE, SPAN, flags)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Root=own",
        f"Root=1-{TRACE[:8]}-{TRACE[8:]};Sampled=1",
        f"Root=2-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN}",
        f"Root=1-{TRACE};Parent={SPAN}",
        f"Root=1-{'0' * 8}-{'0' * 24};Parent={SPAN}",
        f"{XRAY};{'x' * 512}",
        W3C,
    ],
)
def test_texts_that_are_no_xray_header(given: str) -> None:
    assert of_xray(given) is None


def test_both_forms_say_the_same() -> None:
    assert (CONTEXT.traceparent, CONTEXT.xray) == (W3C, XRAY)
    assert of_xray(CONTEXT.xray) == of_w3c(CONTEXT.traceparent) == CONTEXT
    assert CONTEXT.is_sampled
    assert not TraceContext(TRACE, SPAN, 2).is_sampled


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({}, None),
        ({"a": text("b")}, None),
        ({"traceparent": text(W3C)}, CONTEXT),
        ({"traceparent": text(W3C, "String.w3c")}, CONTEXT),
        ({"traceparent": text(W3C, "Binary")}, None),
        ({"traceparent": text("\xe9")}, None),
        ({"mns:traceparent": text(W3C), "mns:tracestate": text("a=b")}, TraceContext(TRACE, SPAN, 1, "a=b")),
        ({"TRACE_CONTEXT": text(W3C, "String")}, CONTEXT),
        ({"AWS.TraceHeader": text(XRAY, "String")}, CONTEXT),
        ({"AWS.TraceHeader": text("Root=1")}, None),
        ({"AWS.TraceHeader": text(XRAY), "traceparent": text(OTHER)}, of_w3c(OTHER)),
        ({"AWS.TraceHeader": text(XRAY), "traceparent": text("damaged")}, CONTEXT),
        ({"traceparent": text(W3C), "tracestate": text("a=b"), "mns:traceparent": text(OTHER)}, of_w3c(W3C, "a=b")),
    ],
)
def test_contexts_of_messages(attributes: dict[str, Attribute], found: TraceContext | None) -> None:
    assert of_attributes(attributes) == found


def test_what_another_dialect_has_stored_is_shown_by_its_name_in_w3c() -> None:
    stored = {"AWS.TraceHeader": text(XRAY), "a": text("b")}
    mns = {"mns:traceparent": text(W3C), "mns:tracestate": text("a=b")}

    assert shown(stored) == {**stored, "traceparent": text(W3C)}
    assert shown(mns) == {**mns, "traceparent": text(W3C), "tracestate": text("a=b")}


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"a": text("b")},
        {"traceparent": text("damaged"), "AWS.TraceHeader": text(XRAY)},
        {"AWS.TraceHeader": text("Root=1")},
    ],
)
def test_a_context_that_was_put_in_is_never_replaced(attributes: dict[str, Attribute]) -> None:
    assert shown(attributes) is attributes
