"""What a console is started with."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

PORT = 9480
IDLE_S = 3600.0
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Order:
    """`endpoint`: the service. `hosts`: further names under which browsers reach the console; those
    of this machine are known. `key`: what seals sessions, "" = one that ends with the process.
    `idle_s`: after so long without an act or a new page a session ends. `timeout_s`: how long the
    service may take to answer. `is_behind_https`: a proxy before it speaks HTTPS. `reports`: the
    folder that `leaseway report` writes to, "" = none.
    """

    endpoint: str
    host: str = "127.0.0.1"
    port: int = PORT
    ca_file: str = ""
    hosts: tuple[str, ...] = ()
    key: str = ""
    idle_s: float = IDLE_S
    timeout_s: float = TIMEOUT_S
    tls_cert: str = ""
    tls_key: str = ""
    is_behind_https: bool = False
    reports: str = ""

    def __repr__(self) -> str:
        return f"Order({self.endpoint}, {self.host}:{self.port})"

    @property
    def is_secure(self) -> bool:
        """Whether browsers speak HTTPS, so that cookies may ask for it."""
        return bool(self.tls_cert) or self.is_behind_https

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(name: str) -> bool:
    """Whether a name or an address is this machine's own."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
