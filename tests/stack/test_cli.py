"""The `leaseway` command, and the pages it writes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from engine.settings import PREFIX, BadSetting
from facade.config import Settings
from facade.programs.cli import config
from facade.programs.cli.local import COMMANDS, main
from facade.programs.cli.words import LOCAL

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["docs/reference/config.md", ".env.example"])
def test_a_generated_page_is_fresh(page: str) -> None:
    text = {"docs/reference/config.md": config.markdown, ".env.example": config.example}[page]()

    assert (ROOT / page).read_text() == text, f"{page} is stale; write it again with `make docs`"


def test_the_page_tells_every_setting() -> None:
    page = " ".join(config.markdown().split())

    for field in dataclasses.fields(Settings):
        shown = f"(`{field.default}`)" if field.default != "" else "(empty)"
        assert f"- `{PREFIX}{field.name.upper()}` {shown}: {' '.join(field.metadata['about'].split())}" in page


def test_config_shows_values_and_origins_and_masks_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEWAY_SECRET", "very-secret")
    monkeypatch.setenv("LEASEWAY_PORT", "9999")

    text = config.current(
        Settings.read({"LEASEWAY_SECRET": "very-secret", "LEASEWAY_PORT": "9999"}),
        {"LEASEWAY_SECRET": "x", "LEASEWAY_PORT": "9999"},
    )

    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()}
    assert rows["LEASEWAY_PORT"] == ["9999", "environment"]
    assert rows["LEASEWAY_HOST"] == ["127.0.0.1", "default"]
    assert rows["LEASEWAY_SECRET"] == [config.MASK, "environment"]
    assert "very-secret" not in text


@pytest.mark.parametrize("url", ["redis://bob:pass@host:1/0", "rediss://:p@ss/word@host/0"])
def test_config_masks_a_password_within_a_url(url: str) -> None:
    text = config.current(Settings.read({"LEASEWAY_REDIS_URL": url}), {})

    shown = next(line.split()[1] for line in text.splitlines() if line.startswith("LEASEWAY_REDIS_URL"))
    assert shown == url.replace("pass" if "bob" in url else "p@ss/word", config.MASK)


@pytest.mark.parametrize(
    "url",
    ["unix://bob:hunter2@/run/r.sock?db=1", "redis://h/0?password=hunter2&db=1", "rediss://h/0?ssl_password=hunter2"],
)
def test_no_password_of_a_url_is_shown_wherever_it_stands(url: str) -> None:
    settings = Settings(
        redis_url=url, secret="hunter2", smtp_password="hunter2", admin_key_secret="hunter2", secret_old="hunter2"
    )
    assert "hunter2" not in config.current(settings, {}) + repr(settings) + str(settings)


def test_a_password_that_breaks_the_url_is_not_told() -> None:
    with pytest.raises(BadSetting, match="%2F") as refused:
        Settings(redis_url="redis://:hunter2/x@host:1/0")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://x", "redis://h/0?colour=red", "rediss://h/0?ssl_ca_certs=/nope"])
def test_a_redis_url_that_can_not_be_used_stops_the_start_in_one_line(url: str) -> None:
    with pytest.raises(BadSetting, match=r"^LEASEWAY_REDIS_URL: "):
        Settings.read({"LEASEWAY_REDIS_URL": url})


def test_every_word_of_this_machine_is_a_command_and_no_other_is() -> None:
    assert {command.name: command.about for command in COMMANDS} == LOCAL


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["up", "--port", "70000"], "argument --port: must be 0 (a free one) to 65535, given '70000'"),
        (["up", "--workers", "0"], "argument --workers: must be 1 to 64, given '0'"),
        (["serve", "--auth", "none"], "argument --auth: invalid choice: 'none'"),
    ],
)
def test_a_bad_option_names_itself_its_limit_and_what_was_given(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert line in capsys.readouterr().err


def test_serve_refuses_an_open_facade_off_loopback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert capsys.readouterr().err.startswith("leaseway serve: auth is open and the address 0.0.0.0 is not loopback")


def test_spark_without_a_job_says_what_is_missing() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "facade", "spark"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "PySpark file" in ended.stderr
