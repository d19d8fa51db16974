"""Traces are off by default, and then nothing of them is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.settings import BadSetting
from facade.config import Settings
from tests.unit.facade.tracing.conftest import Traced

ROOT = Path(__file__).parents[4]
OF_TRACES = (
    "facade.http.tracing", "opentelemetry.sdk.trace.export", "opentelemetry.exporter", "opentelemetry.proto",
    "google.protobuf", "requests",
)  # fmt: skip


def imported(setting: str) -> list[str]:
    """What a worker imports of traces. (Where OpenTelemetry is, redis-py imports its metrics.)"""
    code = (
        "import json, sys; from facade.app import create_app; from facade.config import Settings; "
        f"create_app(Settings(traces={setting!r})); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    modules: list[str] = json.loads(done.stdout)
    return [one for one in modules if one.startswith(OF_TRACES)]


def test_a_worker_without_traces_imports_nothing_of_them() -> None:
    assert Settings().traces == "off"
    assert imported("off") == []


def test_a_worker_with_traces_imports_them(traced: Traced) -> None:
    assert "facade.http.tracing.tracing" in imported("otlp")


def test_without_the_packages_a_worker_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from facade.http.tracing.export import opened

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(BadSetting, match=r"LEASEWAY_TRACES=otlp .* extra otel"):
        opened()


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(BadSetting, match="LEASEWAY_TRACES must be off or otlp, given 'on'"):
        Settings(traces="on")
