"""What bounds a user or an account: what an administrator has set, and in required mode the
defaults for the rest, so that one key can't take the disk, the topics or the connections of all.

A rate has no default: ADR 0030 shares a worker's time, whoever asks. The defaults are lifted by
LEASEWAY_QUOTAS=none as a whole, and for one user by a higher number.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from engine.catalog.catalog import Catalog
from engine.settings import EngineSettings
from schemas.records import UserRecord

# An account has room for five users that use all of theirs.
OF_USER: Final = UserRecord("", 0, queues=1_000, partitions=4_000, daily_bytes=50_000_000_000, waits=1_000)
OF_ACCOUNT: Final = UserRecord("", 0, queues=5_000, partitions=20_000, daily_bytes=250_000_000_000, waits=5_000)
_BOUNDS: Final = ("queues", "partitions", "daily_bytes", "waits")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")


class UserBounds:
    """The bounds of users by name, as the catalog has them now."""

    def __init__(self, settings: EngineSettings, catalog: Catalog) -> None:
        self._catalog = catalog
        self._by_default = settings.auth == "required" and settings.quotas == "default"
        self._administrator = settings.admin_key_id

    def of(self, name: str) -> UserRecord | None:
        """Returns the record of a user or account with every bound that counts; None = nothing is
        noted of it and nothing bounds it. The first administrator has no defaults.
        """
        noted = self._catalog.users.get(name)
        if not self._by_default or not name or name == self._administrator:
            return noted
        defaults = OF_ACCOUNT if _ACCOUNT.fullmatch(name) else OF_USER
        if noted is None:
            return defaults
        return msgspec.structs.replace(noted, **{bound: getattr(noted, bound) or getattr(defaults, bound) for bound in _BOUNDS})
