"""What a facade refuses to start with."""

from __future__ import annotations

import dataclasses
import ipaddress

from engine.settings import variable_of
from facade.config import Settings
from facade.http.sockets.library import Choice, NoLibraryError, chosen
from facade.programs.stack.data.certificate import certificate_of
from facade.programs.stack.processes.errors import StackError

DEFAULTS = {field.name: field.default for field in dataclasses.fields(Settings)}
# A secret is derived from and compared without a limit of tries, so it must not be guessed.
LEAST_SECRET_CHARS = 16
LEAST_DIFFERENT_CHARS = 8
# What this documentation, or one of before, has shown.
SHOWN = frozenset({"change-me", "a-long-random-text", "leaseway-insecure-default"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_unsafe(settings: Settings) -> None:
    """Raises StackError when these settings would let strangers in, name a certificate that can't
    be used, or require a native library that is not there.
    """
    if settings.auth == "required" and not settings.admin_key_secret:
        raise StackError("auth is required but LEASEWAY_ADMIN_KEY_SECRET is empty: nobody could make the first key")
    certificate_of(settings.tls_cert, settings.tls_key)
    if settings.native == "require":
        choice_of(settings)
    if settings.auth == "open":
        if not is_loopback(settings.host):
            raise StackError(
                f"auth is open and the address {settings.host} is not loopback; give --auth required or --host "
                "127.0.0.1"
            )
        return
    for name in ("secret", "admin_key_secret", "secret_old", "admin_key_secret_old"):
        value = getattr(settings, name)
        if (why := _weakness(value)) and (value or not name.endswith("_old")):
            raise StackError(f"{variable_of(name)} {why}: set another, as `openssl rand -base64 32` prints")


def choice_of(settings: Settings) -> Choice:
    """Returns whether the native library serves HTTP in a worker, and why. Raises StackError when
    it must and can't.
    """
    try:
        return chosen(settings.native, settings.audit, settings.tls_cert, settings.tls_key)
    except NoLibraryError as error:
        raise StackError(f"LEASEWAY_NATIVE=require, but {error}") from None


def _weakness(secret: str) -> str | None:
    """Why a secret can be guessed, if it can. The secret itself is not told."""
    if secret in SHOWN:
        return "is one that everybody knows"
    if len(secret) < LEAST_SECRET_CHARS:
        return f"has {len(secret)} characters, {LEAST_SECRET_CHARS} are the least"
    if len(set(secret)) < LEAST_DIFFERENT_CHARS:
        return f"has {len(set(secret))} different characters, {LEAST_DIFFERENT_CHARS} are the least"
    return None
