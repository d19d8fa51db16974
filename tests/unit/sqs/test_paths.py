"""Which paths are those of SQS."""

from __future__ import annotations

import pytest

from facade.dialects.sqs.paths import is_own, of_queue


@pytest.mark.parametrize("path", ["/", "/000000000000", "/000000000000/", "/1/orders", "/1/orders/", "/1/orders/more"])
def test_the_root_and_what_begins_with_an_account_is_of_sqs(path: str) -> None:
    assert is_own(path)


@pytest.mark.parametrize("path", ["", "/v1/queues", "/health", "/1a/orders", "//1/orders", "/orders", "/-1/orders"])
def test_other_paths_are_not(path: str) -> None:
    assert not is_own(path)
    assert not of_queue(path)


def test_a_queue_is_named_by_an_account_and_one_name() -> None:
    assert [of_queue(path) for path in ("/1/orders", "/1/orders/", "/1/orders.fifo", "/1/", "/1", "/",
                                        "/1/orders/more")] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip
