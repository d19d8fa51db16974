"""Which java, redis-server, ports and addresses are good enough."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from facade.config import Settings
from facade.http.sockets import library
from facade.programs.cli import config
from facade.programs.stack.data.leftovers import MARK, leftovers
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import LOWEST, free_port, is_free, reserve, reuse_port_socket
from facade.programs.stack.processes.programs import broker_class_path, find_java, find_redis_server, known_holes
from facade.programs.stack.safety import choice_of, is_loopback, refuse_unsafe
from facade.programs.stack.welcome import endpoint_of, welcome
from facade.programs.stack.workers import programs, read_settings, written

GOOD = "u8Xw-3kFq9_ZtR2mPb7L"


def fake(folder: Path, name: str, answer: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{answer}'\n")
    file.chmod(0o755)
    return file


def test_an_old_java_is_refused_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "java", 'openjdk version "11.0.2"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(StackError, match="is version 11; Kafka needs Java 17 or newer"):
        find_java()


def test_java_home_wins_over_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = fake(tmp_path / "bin", "java", 'openjdk version "21.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java() == str(java)


def test_redis_of_the_path_wins_when_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = fake(tmp_path, "redis-server", "Redis server v=7.2.11 sha=0")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_redis_server() == str(server)


@pytest.mark.parametrize("version", ["5.0.1", "6.2.14", "6.2.19", "7.0.15", "7.2.10", "8.1.9"])
def test_an_old_redis_of_the_path_gives_way_to_the_packaged_one(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake(tmp_path, "redis-server", f"Redis server v={version} sha=0")
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find_redis_server()
    assert found != str(old) and known_holes(found) is None


@pytest.mark.parametrize(
    ("name", "answer", "holes"),
    [
        ("redis-server", "Redis server v=6.2.14 sha=0", True),
        ("redis-server", "Redis server v=6.2.20 sha=0", False),
        ("redis-server", "Redis server v=7.0.15 sha=0", True),
        ("redis-server", "Redis server v=7.4.6 sha=0", False),
        ("redis-server", "Redis server v=8.2.1 sha=0", True),
        ("redis-server", "Redis server v=8.4.0 sha=0", False),
        ("valkey-server", "Valkey server v=8.0.5 sha=0", True),
        ("valkey-server", "Valkey server v=8.1.4 sha=0", False),
        ("valkey-server", "Valkey server v=9.0.0 sha=0", False),
    ],
)
def test_a_server_with_holes_is_used_with_a_warning_when_there_is_no_other(
    name: str, answer: str, holes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fake(tmp_path, name, answer)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert find_redis_server() == str(server)
    warning = known_holes(str(server))
    assert (warning is not None) == holes
    if warning is not None:
        version = answer.split("v=")[1].split(maxsplit=1)[0]
        assert warning.startswith(
            f"{server} is version {version}, in which scripts can take the server over (CVE-2025-49844"
        )


def test_missing_jars_name_the_folder_and_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LW_JARS", str(tmp_path))

    with pytest.raises(StackError, match=f"jars are missing in {tmp_path}/broker; fetch them with `leaseway jars`"):
        broker_class_path()


def test_a_free_port_is_outside_what_clients_are_given() -> None:
    port = free_port()

    assert port >= LOWEST
    if sys.platform == "linux":
        assert port < int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def test_a_reserved_port_is_kept_from_others_but_shared_with_workers() -> None:
    port = free_port()

    with reserve("127.0.0.1", port):
        assert not is_free("127.0.0.1", port)
        with pytest.raises(StackError, match=f"port {port} of 127.0.0.1 is in use or not permitted"):
            reserve("127.0.0.1", port)
        with reuse_port_socket("127.0.0.1", port) as worker:
            worker.listen()
            socket.create_connection(("127.0.0.1", port), 1).close()


@pytest.mark.parametrize(
    ("host", "answer"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"host": "0.0.0.0"}, "auth is open and the address 0.0.0.0 is not loopback"),
        ({"auth": "required"}, "LEASEWAY_ADMIN_KEY_SECRET is empty"),
        ({"auth": "required", "admin_key_secret": GOOD}, "LEASEWAY_SECRET is one that everybody knows"),
        (
            {"auth": "required", "admin_key_secret": GOOD, "secret": ""},
            "LEASEWAY_SECRET has 0 characters, 16 are the least",
        ),
        (
            {"auth": "required", "admin_key_secret": GOOD, "secret": "change-me"},
            "LEASEWAY_SECRET is one that everybody knows",
        ),
        ({"auth": "required", "admin_key_secret": "a", "secret": GOOD}, "LEASEWAY_ADMIN_KEY_SECRET has 1 characters"),
        (
            {"auth": "required", "admin_key_secret": "a" * 40, "secret": GOOD},
            "ADMIN_KEY_SECRET has 1 different characters, 8 are",
        ),
        (
            {"auth": "required", "admin_key_secret": GOOD, "secret": GOOD, "secret_old": "leaseway-insecure-default"},
            "LEASEWAY_SECRET_OLD is one that everybody knows",
        ),
        (
            {"auth": "required", "admin_key_secret": GOOD, "secret": GOOD, "admin_key_secret_old": "short"},
            "ADMIN_KEY_SECRET_OLD has 5",
        ),
    ],
)
def test_unsafe_settings_are_refused(given: dict[str, str], line: str) -> None:
    with pytest.raises(StackError, match=line):
        refuse_unsafe(Settings.read({}, **given))


def test_safe_settings_are_accepted() -> None:
    refuse_unsafe(Settings())
    refuse_unsafe(Settings(host="0.0.0.0", auth="required", secret=GOOD, admin_key_secret=GOOD))


def test_a_worker_reads_the_settings_that_the_supervisor_had() -> None:
    settings = Settings(port=1234, secret="x y", admin_key_secret="", flush_messages=1)

    assert read_settings(written(settings)) == settings


def commands(settings: Settings, folder: Path) -> list[str]:
    """What is to be typed."""
    return [line.strip() for line in welcome(settings, folder).splitlines() if line.startswith("  ")]


def test_the_welcome_has_what_the_command_line_has_to_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: "/usr/bin/leaseway")
    first = "leaseway queue create orders"
    assert commands(Settings(), tmp_path)[0] == first, "without more it is this service without a key"

    settings = Settings(host="::", port=1, auth="required", secret="s", admin_key_secret="k")
    folder = tmp_path / "my data"
    export, *others = commands(settings, folder)
    assert endpoint_of(settings) == "http://[::1]:1"
    folder.mkdir()
    (folder / "admin_secret").write_text("s\n")
    shown = "echo $LEASEWAY_ENDPOINT $LEASEWAY_KEY_ID $LEASEWAY_KEY_SECRET"
    ran = subprocess.run(["sh", "-c", f"{export}; {shown}"], capture_output=True, text=True, check=True)
    assert ran.stdout == "http://[::1]:1 admin s\n"
    assert (others[0], len(others)) == (first, 3)

    *_, last = commands(Settings(tls_cert="/etc/cert.pem"), tmp_path)
    assert last.endswith(" --ca-file /etc/cert.pem")

    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert commands(Settings(), tmp_path)[0] == f"{Path(sys.executable).parent}/{first}", "it is on no PATH"


def test_leftovers_are_known_by_their_mark_alone(tmp_path: Path) -> None:
    for pid, mark, state in [(11, "a", "S"), (12, "b", "S"), (13, "a", "Z"), (14, "ab", "S")]:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(f"X=1\0{MARK}=/{mark}\0Y=2\0".encode())
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) {state} 1")

    assert leftovers(Path("/a"), processes=tmp_path) == [11]


def test_threads_of_a_worker_share_two_heaps_unless_told_otherwise(tmp_path: Path) -> None:
    for given, expected in (({}, "2"), ({"MALLOC_ARENA_MAX": "7"}, "7")):
        (worker,) = programs(Settings(), 1, tmp_path, None, given)
        assert worker.environment["MALLOC_ARENA_MAX"] == expected


def test_the_metrics_of_several_workers_say_whose_they_are(tmp_path: Path) -> None:
    def labels(count: int, name: str = "") -> list[str]:
        found = programs(Settings(worker_label=name), count, tmp_path, None, {})
        return [read_settings(one.input or b"").worker_label for one in found]

    assert labels(1) == [""]
    assert labels(2) == ["0", "1"]
    assert (labels(1, "a"), labels(2, "a")) == (["a"], ["a-0", "a-1"])


def test_without_the_library_only_require_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BESIDE", "BUILT"):
        monkeypatch.setattr(library, name, tmp_path / "none.so")
    library.found.cache_clear()
    try:
        with pytest.raises(StackError, match=r"^LEASEWAY_NATIVE=require, but libleaseway_front\.so is not there"):
            refuse_unsafe(Settings(native="require"))
        assert "a worker does not start (LEASEWAY_NATIVE=require, but" in config.native(Settings(native="require"))
        refuse_unsafe(Settings(native="auto"))
        assert choice_of(Settings(native="auto")).state == "off: the library is not there"
        assert choice_of(Settings(native="off")).state == "off: LEASEWAY_NATIVE=off"
    finally:
        library.found.cache_clear()
