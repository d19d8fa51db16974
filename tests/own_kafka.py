"""A Kafka whose listeners a test chooses, and a Redis, with files in a folder of the test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from facade.programs.stack import redis_server
from facade.programs.stack.broker import answers, java_command
from facade.programs.stack.data.leftovers import MARK
from facade.programs.stack.processes.child import Child, Program
from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.settings import BROKER_PROPERTIES, replication

# Kafka's least.
_ITERATIONS = 4_096
# Listeners of the broker itself.
_OWN = ("PLAIN", "CONTROLLER")


@contextlib.asynccontextmanager
async def own_services(
    folder: Path, protocols: Mapping[str, str], properties: Mapping[str, str], flags: Sequence[str] = ()
) -> AsyncIterator[tuple[str, dict[str, int]]]:
    """Runs them until the end: the URL of Redis, and the port of each of Kafka's listeners.

    `protocols` has the listeners by name, `properties` are of the broker, `flags` of its Java.
    """
    ports = dict.fromkeys((*_OWN, *protocols), 0)
    for name in ports:
        ports[name] = free_port(*ports.values())
    redis_port, socket = free_port(*ports.values()), redis_server.socket_path(folder)
    assert socket is not None
    (folder / "logs").mkdir()
    environment = {**os.environ, MARK: str(folder)}
    kafka = _kafka(folder, ports, protocols, properties, flags, environment, _cluster())
    redis = redis_server.program(folder, socket, environment, redis_port)
    children = [Child(program, lambda: None, lambda text: None) for program in (kafka, redis)]
    try:
        await asyncio.gather(*(child.start() for child in children))
        yield f"redis://127.0.0.1:{redis_port}/0", ports
    finally:
        await asyncio.gather(*(child.stop() for child in children))


@contextlib.asynccontextmanager
async def three_kafkas(folder: Path) -> AsyncIterator[tuple[list[Child], list[int]]]:
    """Runs a cluster of three until the end: each broker, and its port. One that dies is started
    again.
    """
    ports: list[int] = []
    for _ in range(6):
        ports.append(free_port(*ports))
    clients, controllers = ports[:3], ports[3:]
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
    cluster = _cluster()
    children = []
    for number, (client, controller) in enumerate(zip(clients, controllers, strict=True), 1):
        own = folder / str(number)
        (own / "logs").mkdir(parents=True)
        more = {"node.id": str(number), "controller.quorum.voters": voters, **replication(3)}
        environment = {**os.environ, MARK: str(own)}
        program = _kafka(own, {"PLAIN": client, "CONTROLLER": controller}, {}, more, ["-Xmx384m"], environment, cluster)
        children.append(Child(program, lambda: None, lambda text: None))
    try:
        await asyncio.gather(*(child.start() for child in children))
        yield children, clients
    finally:
        await asyncio.gather(*(child.stop() for child in children))


def _cluster() -> str:
    return "A" + urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def _kafka(
    folder: Path,
    ports: Mapping[str, int],
    protocols: Mapping[str, str],
    properties: Mapping[str, str],
    flags: Sequence[str],
    environment: dict[str, str],
    cluster: str,
) -> Program:
    """A broker with a listener at each of `ports` on 127.0.0.1, by name."""
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    spoken = {**dict.fromkeys(_OWN, "PLAINTEXT"), **protocols}
    written = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(place for name, place in listeners.items() if name != "CONTROLLER"),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAIN",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in spoken.items()),
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "log.dirs": str(folder / "kafka"),
        **BROKER_PROPERTIES,
        **replication(1),
        **properties,
    }
    file = folder / "kafka.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in written.items()))
    java = (*java_command(folder), *flags)
    command = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return Program(
        name="Kafka",
        command=(*java, "kafka.Kafka", str(file)),
        environment=environment,
        output=folder / "logs" / "kafka.out",
        ready=lambda _pid: answers(ports["PLAIN"]),
        start_s=600,
        stop_s=20,
    )


def set_password(options: Mapping[str, str], user: str, password: str) -> None:
    """Sets the password of a user for SCRAM."""
    known = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _ITERATIONS)
    client = AdminClient(dict(options))
    changed = client.alter_user_scram_credentials([UserScramCredentialUpsertion(user, known, password.encode())])
    for future in changed.values():
        future.result(20)
