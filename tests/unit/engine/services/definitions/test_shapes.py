"""What is refused names its place in the document."""

from __future__ import annotations

import pytest

from engine.errors import DelayTooLong, EngineError, InvalidValue, LogUnavailable, NotAuthorised
from engine.services.definitions.shapes import at, check_once


def raised(error: EngineError) -> EngineError:
    with pytest.raises(EngineError) as found, at("queues[3]"):
        raise error
    return found.value


def test_what_is_wrong_with_a_value_names_its_path() -> None:
    found = raised(InvalidValue("lease_ms is wrong", field="lease_ms", limit=[0, 5], given=9))
    assert (found.field, found.detail) == ("queues[3].lease_ms", "queues[3]: lease_ms is wrong")
    assert (found.limit, found.given) == ([0, 5], 9)
    assert raised(InvalidValue("wrong")).field == "queues[3]"


def test_an_error_stays_what_it_is() -> None:
    found = raised(DelayTooLong("too long", queue="q", most_ms=5, delay_ms=9, field="delay_ms"))
    assert isinstance(found, DelayTooLong)
    assert (found.queue, found.most_ms, found.field) == ("q", 5, "queues[3].delay_ms")


@pytest.mark.parametrize("error", [NotAuthorised("no", field="principal"), LogUnavailable("away")])
def test_who_may_not_and_what_may_be_repeated_is_told_as_it_is(error: EngineError) -> None:
    field, detail = error.field, error.detail
    assert (raised(error).field, raised(error).detail) == (field, detail)


def test_what_is_there_twice_is_named_by_its_second_place() -> None:
    check_once("tags", ["a", "b"])
    with pytest.raises(InvalidValue, match=r"tags\[2\] is there already, as tags\[0\]") as found:
        check_once("tags", ["a", "b", "a"])
    assert found.value.field == "tags[2]"
