"""What `leaseway up` prints when it is ready: the endpoint and three commands that work.

It must not do anything.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from facade.config import Settings
from facade.programs.connect.profiles import ENDPOINT, KEY_ID, KEY_SECRET, LOCAL_ENDPOINT

LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def connectable(host: str) -> str:
    """The address at which a local client reaches a server bound to `host`."""
    return LOCAL.get(host, host)


def endpoint_of(settings: Settings) -> str:
    """The URL at which a local client reaches the facade."""
    host = connectable(settings.host)
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://[{host}]:{settings.port}" if ":" in host else f"{scheme}://{host}:{settings.port}"


def ports_of(settings: Settings) -> dict[str, int]:
    """The ports that the facade listens on, by the options that name them; 0 = none."""
    return {"--port": settings.port, "--rocketmq-port": settings.rocketmq_port}


def rocketmq_of(settings: Settings) -> str:
    """What a local RocketMQ client takes as endpoints; "" = the port is off."""
    return f"{connectable(settings.host)}:{settings.rocketmq_port}" if settings.rocketmq_port else ""


def welcome(settings: Settings, folder: Path, console: str = "") -> str:
    """The endpoint, the address of the console if there is one, and three commands: create a queue,
    send, receive; before them what the command line has to know of this service.
    """
    endpoint = endpoint_of(settings)
    known = {ENDPOINT: endpoint} if endpoint != LOCAL_ENDPOINT else {}
    if settings.auth == "required":
        known |= {KEY_ID: settings.admin_key_id, KEY_SECRET: f"$(cat {shlex.quote(str(folder / 'admin_secret'))})"}
    variables = " ".join(f'{name}="{value}"' for name, value in known.items())
    trust = f" --ca-file {shlex.quote(settings.tls_cert)}" if settings.tls_cert else ""
    return "\n".join(
        [
            f"the endpoint is {endpoint}",
            *([f"the console is {console}"] if console else ()),
            *([f"RocketMQ clients are served at {rocketmq_of(settings)}"] if settings.rocketmq_port else ()),
            "",
            *([f"  export {variables}"] if variables else ()),
            f"  {_program()} queue create orders{trust}",
            f"  {_program()} message send orders hello{trust}",
            f"  {_program()} message receive orders --wait-seconds 5 --ack{trust}",
            "",
        ]
    )


def _program() -> str:
    """The command line as a shell finds it: by its name, or where it is."""
    beside = Path(sys.executable).parent / "leaseway"
    return "leaseway" if shutil.which("leaseway") or not beside.exists() else shlex.quote(str(beside))
