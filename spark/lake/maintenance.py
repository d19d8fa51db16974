"""Keeps tables small and quick: after commits and never beside one, and only what is due."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from spark.lake.tables.catalog import Catalog
from spark.lake.tables.table import Table
from spark.progress import tell

# A day of a table has at most about so many files, and one more for each commit since.
MOST_FILES = 24
_HOUR_MS = 3_600_000
# A question may still be reading what was newest when it began.
_KEEP_MS = _HOUR_MS
# Files that no snapshot has: a commit takes minutes, so these belong to none that may yet be.
_ORPHAN_MS = 3 * 24 * _HOUR_MS
EXPIRED, _CLEANED = "leaseway.expired_ms", "leaseway.cleaned_ms"


def maintain(catalog: Catalog, tables: Mapping[str, Table], changed: Collection[str]) -> None:
    """Compacts the tables that were `changed`; each hour forgets old snapshots, each day removes
    what ended jobs have left. Raises Py4JJavaError.
    """
    for name in sorted(changed):
        read = tables[name].compact(MOST_FILES)
        if read:
            tell("lake", f"{name}: {read} files compacted, {tables[name].files()} are there now")
    now, noted = int(time.time() * 1000), catalog.noted()
    if EXPIRED not in noted:  # What is new has nothing that is old.
        catalog.note(dict.fromkeys((EXPIRED, _CLEANED), str(now)))
        return
    if now - int(noted[EXPIRED]) >= _HOUR_MS:
        gone = sum(table.expire(_KEEP_MS) for table in tables.values())
        tell("lake", f"{gone} files of snapshots older than {_KEEP_MS // 60_000} min deleted")
        catalog.note({EXPIRED: str(now)})
    if now - int(noted[_CLEANED]) >= 24 * _HOUR_MS:
        gone = sum(table.remove_orphans(_ORPHAN_MS) for table in tables.values())
        tell("lake", f"{gone} files that belong to no snapshot deleted")
        catalog.note({_CLEANED: str(now)})
