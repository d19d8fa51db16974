"""All operations of the native dialect; its errors speak its words (seconds)."""

from __future__ import annotations

from dataclasses import replace

from facade.dialects.native import access, messages, queues, tasks, transactions, watching
from facade.dialects.native.wire.units import native_error

_ALL = (*queues.OPERATIONS, *messages.OPERATIONS, *transactions.OPERATIONS, *tasks.OPERATIONS, *access.OPERATIONS, *watching.OPERATIONS)
OPERATIONS = tuple(replace(operation, reword=native_error) for operation in _ALL)
