"""Which share of its requests the plane of a side has served, by the metrics of its worker."""

from __future__ import annotations

import re
import ssl
import urllib.request
from typing import Self

from msgspec import Struct

_ROW = re.compile(
    r'^leaseway_plane_requests_total\{reason="(\w*)",way="(\w+)"(?:,worker="\d+")?\} ([0-9.e+]+)$', re.MULTILINE
)
# Requests that are no hot verbs: looks at queues and at the metrics themselves.
_COLD = "verb"
READ_S = 10.0


class Ways(Struct, frozen=True):
    """Hot requests that the plane has served, and those that Python has."""

    plane: float = 0.0
    python: float = 0.0

    @classmethod
    def read(cls, metrics: str) -> Self:
        """Returns what a page of metrics says; nothing of a worker without a plane."""
        plane = python = 0.0
        for reason, way, number in _ROW.findall(metrics):
            if way == "plane":
                plane += float(number)
            elif reason != _COLD:
                python += float(number)
        return cls(plane, python)

    def share_since(self, before: Ways) -> float | None:
        """Returns the plane's part of what was served since; None = nothing was counted."""
        plane, python = self.plane - before.plane, self.python - before.python
        return plane / (plane + python) if plane + python > 0 else None


def ways_of(endpoint: str) -> Ways:
    """Returns what the worker at an endpoint of this machine has counted; nothing if none says."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"{endpoint}/metrics", timeout=READ_S, context=trusting) as answer:
            return Ways.read(answer.read().decode())
    except OSError:
        return Ways()
