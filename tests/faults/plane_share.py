"""Whether it was the plane of the library that was hurt."""

from __future__ import annotations

import re
import urllib.request

_SERVED = re.compile(r'^leaseway_plane_requests_total{.*way="plane"(?:,worker="\d+")?} ([0-9.e+]+)$', re.MULTILINE)


def by_plane(endpoint: str) -> int:
    """Returns how many requests the plane of the worker that answers has served since that was
    started.
    """
    with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=30) as answer:
        return int(sum(map(float, _SERVED.findall(answer.read().decode()))))
