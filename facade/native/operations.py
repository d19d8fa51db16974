"""All operations of the native dialect; its errors speak its words (seconds).

Neighbours: `messages`, `queues`, `transactions`, `tasks`, `access`, `watching` hold them;
`facade.app` mounts them. This module must not know HTTP.
"""

from __future__ import annotations

from dataclasses import replace

from facade.native import access, messages, queues, tasks, transactions, watching
from facade.native.wire.units import native_error

_ALL = (*queues.OPERATIONS, *messages.OPERATIONS, *transactions.OPERATIONS, *tasks.OPERATIONS, *access.OPERATIONS, *watching.OPERATIONS)
OPERATIONS = tuple(replace(operation, reword=native_error) for operation in _ALL)
