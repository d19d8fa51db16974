"""Which page is written by which module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.docs import cli, dashboard, errors, glossary, metrics, queue_settings

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
GENERATED: dict[Path, Callable[[], str]] = {
    REFERENCE / "errors.md": errors.page,
    REFERENCE / "metrics.md": metrics.page,
    REFERENCE / "cli.md": cli.page,
    REFERENCE / "glossary.md": glossary.page,
    REFERENCE / "queue-settings.md": queue_settings.page,
    ROOT / "deploy" / "monitoring" / "grafana.json": dashboard.page,
}
