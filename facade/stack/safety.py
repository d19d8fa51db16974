"""What a facade refuses to start with.

Neighbours: `facade.cli.cli` and `worker` call it before anything listens. It must not know how
requests are authorised.
"""

from __future__ import annotations

import dataclasses
import ipaddress

from facade.config import Settings
from facade.stack.processes.certificate import certificate_of
from facade.stack.processes.errors import StackError

DEFAULTS = {field.name: field.default for field in dataclasses.fields(Settings)}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_unsafe(settings: Settings) -> None:
    """Raises StackError when these settings would let strangers in, or name a certificate that
    can't be used.
    """
    if settings.auth == "required" and not settings.admin_key_secret:
        raise StackError("auth is required but LEASEWAY_ADMIN_KEY_SECRET is empty: nobody could make the first key")
    certificate_of(settings.tls_cert, settings.tls_key)
    if is_loopback(settings.host):
        return
    if settings.auth == "open":
        raise StackError(f"auth is open and the address {settings.host} is not loopback; give --auth required or --host 127.0.0.1")
    if settings.secret == DEFAULTS["secret"]:
        raise StackError(f"LEASEWAY_SECRET is the public default and the address {settings.host} is not loopback; set a secret")
