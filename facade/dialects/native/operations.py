"""All operations of the native dialect; its errors speak its words (seconds)."""

from __future__ import annotations

from dataclasses import replace

from facade.dialects.native import access, messages, queues, tasks, transactions, watching
from facade.dialects.native.definitions import operations as definitions
from facade.dialects.native.wire.units import native_error

_ROOMS = (queues, messages, transactions, tasks, access, watching, definitions)
_ALL = (operation for room in _ROOMS for operation in room.OPERATIONS)
OPERATIONS = tuple(replace(operation, reword=native_error) for operation in _ALL)
