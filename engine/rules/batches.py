"""The rule of atomic batches: docs/decisions/0002."""

from __future__ import annotations

# An atomic batch whose last record comes so much later than its first is torn: never shown.
BATCH_SPAN_MS = 30_000
