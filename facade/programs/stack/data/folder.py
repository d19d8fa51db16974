"""The data folder of `leaseway up`: its lock, its format, its secrets, run.json.

DIR/stack.json   format, cluster id, ports       DIR/kafka, DIR/redis   the data
DIR/run.json     what runs now                   DIR/logs               output of every part
DIR/secret       the service's secret (0600)     DIR/lock               held by the supervisor
DIR/*_secret     of the administrator, of Kafka's users (0600)
DIR/kafka.*      files for Kafka and its clients (those with passwords 0600)
DIR/kafka.aside-TIME, DIR/redis.aside-TIME       data that `up` was told to start without
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from facade.programs.stack.data.broken import PREPARED, prepared_prefix
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import free_port

FORMAT = 2
LEAST_FREE_BYTES = 512 * 1024 * 1024
# To be started again with: Kafka writes files at its start, and dies of it when it can't.
LEAST_START_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """What a data folder keeps from start to start."""

    format: int
    cluster_id: str
    kafka_port: int  # for local tools; the service has its own
    controller_port: int
    service_port: int


class DataFolder:
    """An open and locked data folder. Closing it, or the end of the process, releases the lock."""

    def __init__(self, path: Path, lock: int, identity: Identity) -> None:
        self.path = path
        self.identity = identity
        self._lock = lock

    @property
    def logs(self) -> Path:
        """The folder of the parts' output."""
        return self.path / "logs"

    @classmethod
    def open(cls, path: Path) -> DataFolder:
        """Make or open the folder and lock it.

        Raises StackError when it can't be written, belongs to something else, is of another format,
        is nearly full, or another `leaseway up` has it.
        """
        path = path.absolute()
        _make_writable(path)
        lock = _take_lock(path)
        try:
            free = shutil.disk_usage(path).free
            if free < LEAST_FREE_BYTES:
                raise StackError(
                    f"data folder {path}: {free >> 20} MiB of disk are free, {LEAST_FREE_BYTES >> 20} MiB are the least"
                )
            folder = cls(path.resolve(), lock, _read_identity(path))
            folder.save(folder.identity)
            path.chmod(0o700)
            folder.logs.mkdir(exist_ok=True)
            # A supervisor that was killed left it; its pids mean nothing now.
            (folder.path / "run.json").unlink(missing_ok=True)
        except OSError as error:
            os.close(lock)
            raise StackError(f"data folder {path} can't be used: {error.strerror}: {error.filename}") from None
        except BaseException:
            os.close(lock)
            raise
        return folder

    def save(self, identity: Identity) -> None:
        """Remember `identity` for the next start."""
        self.identity = identity
        replace(self.path / "stack.json", json.dumps(asdict(identity), indent=2) + "\n")

    def secret(self, name: str) -> str:
        """The secret kept in DIR/`name`, readable by the owner only; made when it is not there
        yet.
        """
        file = self.path / name
        if file.is_file() and (kept := file.read_text().strip()):
            return kept
        made = secrets.token_urlsafe(32)
        replace(file, made + "\n", mode=0o600)
        return made

    @property
    def prepared(self) -> str:
        """See `prepared_prefix`."""
        return prepared_prefix(self.path)

    def note_prepared(self, prefix: str) -> None:
        """Kafka was told so."""
        replace(self.path / PREPARED, prefix + "\n")

    def write_run(self, running: dict[str, Any]) -> None:
        """Replace run.json in one step."""
        replace(self.path / "run.json", json.dumps(running, indent=2) + "\n")

    def close(self) -> None:
        """Remove run.json and release the lock: a clean stop, also when the disk refuses."""
        with contextlib.suppress(OSError):
            (self.path / "run.json").unlink(missing_ok=True)
        os.close(self._lock)


def full_disk(path: Path) -> str | None:
    """That the disk under `path` has no room for a service to start in, if it has none."""
    try:
        free = shutil.disk_usage(path).free
    except OSError:
        return None
    return (
        f"the disk of {path} is full ({free >> 20} MiB are free, {LEAST_START_BYTES >> 20} MiB are the least)"
        if free < LEAST_START_BYTES
        else None
    )


def replace(file: Path, text: str, mode: int = 0o644) -> None:
    """Write `file` so that a reader sees the old text or the new one, never a part, and a crash
    keeps one of them.
    """
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as output:
        output.write(text)
        output.flush()
        os.fsync(output.fileno())
    new.replace(file)


def _make_writable(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(f"data folder {path} can't be made: {error.strerror}") from None
    foreign = [entry.name for entry in path.iterdir() if entry.name != "lock"]
    if foreign and not (path / "stack.json").exists():
        raise StackError(
            f"data folder {path} is not empty and not Leaseway's (no stack.json, but {sorted(foreign)[0]}); "
            "give --data another"
        )


def _take_lock(path: Path) -> int:
    try:
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StackError(f"data folder {path} can't be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise StackError(
            f"data folder {path} is in use by another `leaseway up`; stop that one, or give --data another"
        ) from None
    return lock


def _read_identity(path: Path) -> Identity:
    file = path / "stack.json"
    if not file.exists():
        return _new_identity()
    try:
        kept = json.loads(file.read_text())
        version = kept["format"]
        if version == FORMAT:
            return Identity(**kept)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StackError(
            f"data folder {path} is broken: stack.json can't be read ({type(error).__name__}: {error})"
        ) from None
    raise StackError(f"data folder {path} has format {version!r}; this version of Leaseway reads format {FORMAT}")


def _new_identity() -> Identity:
    kafka_port = free_port()
    controller_port = free_port(kafka_port)
    return Identity(FORMAT, _cluster_id(), kafka_port, controller_port, free_port(kafka_port, controller_port))


def _cluster_id() -> str:
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Kafka's tools take a leading dash for an option.
        if not made.startswith("-"):
            return made
