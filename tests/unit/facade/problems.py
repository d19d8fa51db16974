"""Reads a problem out of a reply, and checks its form for all tests."""

from __future__ import annotations

from typing import Any

import httpx


def problem_in(answer: httpx.Response) -> dict[str, Any]:
    """The problem in `answer`; its form is checked here for all tests."""
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "code", "detail"} <= set(found)
    assert set(found) <= {"type", "title", "status", "code", "detail", "field", "limit", "given"}
    assert found["status"] == answer.status_code
    assert found["type"] == f"/docs#{found['code']}"
    assert len(answer.content) < 2000
    return found
