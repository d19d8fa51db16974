"""Kafka as a child: its files, its command, is it there."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from facade.programs.stack.data.broken import FORMATTED, kafka_gone
from facade.programs.stack.data.credentials import CONTROLLER, SERVICE, Credentials
from facade.programs.stack.data.folder import DataFolder, Identity, full_disk, replace
from facade.programs.stack.processes.child import Program
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.jars import archive_of
from facade.programs.stack.processes.programs import broker_class_path, find_java, jars_folder
from facade.programs.stack.processes.settings import AFTER_KILL, BROKER_PROPERTIES, JVM_FLAGS, replication
from facade.programs.stack.reach import kafka_at

# Of a start that gets on: a machine may have far more to do than it can.
START_S = 600.0
# Without any sign that it gets on.
STALL_S = 60.0
STOP_S = 20.0
LOG_SETTINGS = Path(__file__).with_name("log4j2.xml")


def properties(
    folder: Path, identity: Identity, credentials: Credentials, more_super_users: Sequence[str] = ()
) -> dict[str, str]:
    """All properties of the embedded broker: the shared table and what depends on this folder.

    It has a listener for the service, which knows a password, and one for tools of this machine,
    which may what `engine.log.client.local_rights` gives them.
    """
    at = {"SERVICE": identity.service_port, "LOCAL": identity.kafka_port, "CONTROLLER": identity.controller_port}
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in at.items()}
    controller = f"127.0.0.1:{identity.controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": f"{listeners['SERVICE']},{listeners['LOCAL']}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "SERVICE",
        "listener.security.protocol.map": "SERVICE:SASL_PLAINTEXT,LOCAL:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        **credentials.of_broker(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in (SERVICE, CONTROLLER, *more_super_users)),
        # The fixed voters, not a voter set kept in the log: so the ports may change between starts.
        "controller.quorum.voters": f"1@{controller}",
        "log.dirs": str(folder / "kafka"),
        **BROKER_PROPERTIES,
        **replication(1),
    }


def program(
    data: DataFolder, environment: dict[str, str], more_super_users: Sequence[str] = (), start_s: float = START_S
) -> Program:
    """Write the broker's files, format its storage when that was never finished, and say how to run
    it. `more_super_users` are for tests.

    Raises StackError when Java or the jars are missing, the storage can't be formatted, or was and
    is gone.
    """
    folder, identity, credentials = data.path, data.identity, Credentials.of(data)
    if gone := kafka_gone(folder):
        raise StackError(gone)
    java = java_command(folder)
    file, said = folder / "kafka.properties", properties(folder, identity, credentials, more_super_users)

    def rewrite() -> None:
        with contextlib.suppress(OSError):  # a full disk; then it has those of before
            _write(file, said, folder)

    _write(file, said, folder)
    words = (
        "format",
        "-t",
        identity.cluster_id,
        "-c",
        str(file),
        "--add-scram",
        credentials.scram,
        "--ignore-formatted",
    )
    _format(folder, java, words, environment, start_s)
    return Program(
        name="Kafka",
        command=(*java, "kafka.Kafka", str(file)),
        environment=environment,
        output=folder / "logs" / "kafka.out",
        ready=lambda _pid: answers(identity.service_port),
        start_s=start_s,
        stall_s=STALL_S,
        logs=(folder / "logs" / "kafka.log",),
        stop_s=STOP_S,
        hindrance=lambda: full_disk(folder) or kafka_gone(folder),
        before=rewrite,
    )


def _write(file: Path, said: dict[str, str], folder: Path) -> None:
    """Writes the properties of the next life, by how the one before has ended."""
    found = {**said, **(AFTER_KILL if was_killed(folder) else {})}
    lines = [f"{name}={_escaped(value)}" for name, value in found.items()]
    replace(file, "\n".join(["# Written at every start; changes are lost.", *lines, ""]), mode=0o600)


def was_killed(folder: Path) -> bool:
    """Whether the broker of a folder had a life and did not end it by itself: then its controller
    takes it for registered still. Kafka leaves a file when it stops, and removes it when it starts.
    """
    logs = folder / "kafka"
    return (logs / "__cluster_metadata-0").exists() and not (logs / ".kafka_cleanshutdown").exists()


def java_command(folder: Path) -> tuple[str, ...]:
    """What Kafka's programs are begun with; their logs go to `folder`/logs. Raises StackError."""
    java = [find_java(), *JVM_FLAGS]
    if (archive := class_archive(java[0])).exists():
        java.append(f"-XX:SharedArchiveFile={archive}")
    java += [f"-Dleaseway.logs={folder / 'logs'}", f"-Dlog4j2.configurationFile={LOG_SETTINGS}"]
    return (*java, "-cp", broker_class_path())


def class_archive(java: str) -> Path:
    """Where Kafka's class archive is, or would be."""
    return archive_of("broker", java, jars_folder() / "broker")


async def answers(port: int) -> bool:
    """Whether a broker on 127.0.0.1:`port` answers."""
    return await kafka_at(("127.0.0.1", port)) is None


def _format(
    folder: Path, java: tuple[str, ...], words: tuple[str, ...], environment: dict[str, str], within_s: float
) -> None:
    """The mark is written last, so a kill in the middle means formatting again; formatted folders
    are left as they are.
    """
    mark, file = folder / FORMATTED, folder / "kafka.format"
    if mark.exists():
        return
    # The words of a command are seen by everybody on the machine, so they are in a file.
    quoted = (word.replace("\\", "\\\\").replace('"', '\\"') for word in ("kafka.tools.StorageTool", *words))
    replace(file, "".join(f'"{word}"\n' for word in quoted), mode=0o600)
    command = (*java, f"@{file}")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=within_s, check=False)
    except subprocess.TimeoutExpired:
        raise StackError(f"Kafka's storage in {folder} is not formatted after {within_s:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[0]
        raise StackError(f"Kafka's storage in {folder} can't be formatted; Kafka says {said[:200]!r}")
    file.unlink()
    mark.touch()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
