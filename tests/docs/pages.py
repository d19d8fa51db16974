"""Which page is written by which module."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.docs import cli, errors, glossary, metrics, queue_settings

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
GENERATED: dict[Path, Callable[[], str]] = {
    REFERENCE / "errors.md": errors.page,
    REFERENCE / "metrics.md": metrics.page,
    REFERENCE / "cli.md": cli.page,
    REFERENCE / "glossary.md": glossary.page,
    REFERENCE / "queue-settings.md": queue_settings.page,
}
