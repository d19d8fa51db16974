"""Where a request came to: what the URLs that it is told begin with, and whose queues it means.

`facade.called` knows how the client called us. Account and region count with `sqs_namespaces`: the
region is the one that was signed for; the account is the first part of the path, else a key id of
12 digits, else that of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

from facade.called import base_of
from facade.config import SqsSettings
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.signature import claimed_scope
from facade.dialects.sqs.wire.errors import SIGNATURE_DOES_NOT_MATCH, SqsError

# Names that clients call this worker by, kept with what follows from them; of more none is kept.
PLACES: Final = 1000
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_ACCOUNT_OF_PATH: Final = re.compile(r"/([0-9]{12})(?:/|$)")


class Places:
    """The places of this worker."""

    def __init__(self, settings: SqsSettings, *, trust_proxy: bool) -> None:
        self._settings = settings
        self._trusted = trust_proxy
        self._by = settings.sqs_namespaces.split(",")
        self._alike = not settings.sqs_namespaces and not self._trusted
        self._known: dict[tuple[bytes, str, str] | bytes, Place] = {}

    def place_of(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Place:
        """The place of a request. Raises SqsError for one that is signed for a region that can't
        be.
        """
        host = headers.get(b"host", b"")
        if self._alike and (known := self._known.get(host)) is not None:
            return known
        base = base_of(scope, headers, trusted=self._trusted)
        account, region = self._whose(scope, headers) if self._settings.sqs_namespaces else ("", "")
        key = host if self._alike else (base, account, region)
        found = self._known.get(key)
        if found is None:
            s = self._settings
            by_account, by_region = "account" in self._by, "region" in self._by
            found = Place(
                base.decode("latin-1"), account or s.sqs_account, region or s.sqs_region, by_account, by_region
            )
            if host and len(self._known) < PLACES:
                self._known[key] = found
        return found

    def called(self, scope: Scope, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The headers as the client sent them, for its signature: the host is the one that it
        called.
        """
        found: list[tuple[bytes, bytes]] = scope["headers"]
        if not self._trusted:
            return found
        host = base_of(scope, headers, trusted=self._trusted).partition(b"://")[2]
        return [(name, host if name == b"host" else value) for name, value in found]

    def _whose(self, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[str, str]:
        """The account and region of a request; "" = those of the settings."""
        signed = claimed_scope(headers.get(b"authorization", b""), scope.get("query_string", b""))
        key_id, region = signed or ("", "")
        if region and not _REGION.fullmatch(region):
            raise SqsError(
                SIGNATURE_DOES_NOT_MATCH, f"Credential should be scoped to a valid region, not '{region[:40]}'."
            )
        path = _ACCOUNT_OF_PATH.match(scope.get("path", ""))
        account = path[1] if path is not None else key_id if _ACCOUNT.fullmatch(key_id) else ""
        return account if "account" in self._by else "", region if "region" in self._by else ""
