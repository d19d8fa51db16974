"""The ids of requests."""

from __future__ import annotations

from contextvars import copy_context

from facade.http.log import request_ids


def test_ids_differ_and_are_uuids_of_version_4() -> None:
    ids = {request_ids.new() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert all(len(one) == 36 and one[14] == "4" and one[19] == "a" for one in ids)


def test_a_short_id_has_24_digits_and_is_another_each_time() -> None:
    ids = {copy_context().run(lambda: request_ids.begin(short=True)) for _ in range(100)}
    assert len(ids) == 100 and all(len(one) == 24 and one == one.upper() for one in ids)


def test_who_serves_a_request_is_told_its_id_and_nobody_else() -> None:
    def serve() -> tuple[str, str]:
        return request_ids.begin(), request_ids.current()

    begun, told = copy_context().run(serve)
    assert begun == told and request_ids.current() == ""
