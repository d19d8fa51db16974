"""What a console is started with."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from facade.programs.console.options import add_arguments, order_of
from facade.programs.console.order import Order, is_loopback
from facade.programs.stack.processes.errors import StackError


def ordered(*words: str) -> Order:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return order_of(parser.parse_args(words))


@pytest.mark.parametrize(
    ("name", "is_ours"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("a.localhost", True),
        ("0.0.0.0", False), ("localhost.example", False), ("10.0.0.1", False), ("", False),
    ],
)  # fmt: skip
def test_what_only_this_machine_reaches(name: str, is_ours: bool) -> None:
    assert is_loopback(name) == is_ours
    assert Order("http://127.0.0.1:9400", host=name).is_local == is_ours


def test_an_order_is_secure_by_a_certificate_or_a_proxy() -> None:
    assert not Order("http://h").is_secure
    assert Order("http://h", tls_cert="c", tls_key="k").is_secure
    assert Order("http://h", is_behind_https=True).is_secure


def test_options_make_an_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEWAY_ENDPOINT", "https://Queues.example/")
    (tmp_path / "key").write_text("a key of sixteen letters\n")

    order = ordered("--hosts", "a.example, b.example", "--key-file", str(tmp_path / "key"), "--idle-minutes", "5")

    assert (order.endpoint, order.hosts, order.key, order.idle_s) == (
        "https://queues.example", ("a.example", "b.example"), "a key of sixteen letters", 300,
    )  # fmt: skip
    assert "sixteen" not in repr(order)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--port", "0"], "--port is 1 to 65535, given 0"),
        (["--idle-minutes", "0"], "--idle-minutes is more than 0 and at most 1440, given 0"),
        (["--timeout", "nan"], "--timeout is more than 0 and at most 60, given nan"),
        (["--tls-cert", "c"], "--tls-cert and --tls-key go together"),
        (["--endpoint", "queues"], "an endpoint is http://HOST:PORT or https://HOST:PORT, given 'queues'"),
        (["--key-file", "/nowhere/key"], "--key-file /nowhere/key can't be read"),
    ],
)
def test_a_value_that_is_not_right_is_named(words: list[str], why: str) -> None:
    with pytest.raises(StackError, match=why.replace("(", r"\(")):
        ordered(*words)


def test_a_key_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("short\n")

    with pytest.raises(StackError, match="has 5 characters, 16 are the least"):
        ordered("--key-file", str(tmp_path / "key"))
