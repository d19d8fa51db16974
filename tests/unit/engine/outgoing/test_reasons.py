"""What a user reads when a webhook or a mail could not be delivered: nothing of the network
inside.
"""

from __future__ import annotations

import smtplib
import socket

import pytest

from engine.alerts.messenger import Mail, NotDeliveredError
from engine.outgoing.post import OutgoingError, post
from engine.settings import EngineSettings


def closed_port() -> int:
    """Returns a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_refused_connection_names_no_address() -> None:
    with pytest.raises(OutgoingError) as caught:
        await post(f"http://localhost:{closed_port()}/", b"x", {}, private=True)
    assert str(caught.value) == "it refused the connection"


async def test_an_address_that_is_not_public_is_not_named() -> None:
    with pytest.raises(OutgoingError) as caught:
        await post("http://localhost:1/", b"x", {}, private=False)
    assert "may not go to" in str(caught.value)
    assert "127.0.0.1" not in str(caught.value) and "::1" not in str(caught.value)


async def test_a_host_without_an_address_names_no_resolver() -> None:
    with pytest.raises(OutgoingError, match=r"^its host has no address$"):
        await post("http://no-such-host.invalid/", b"x", {}, private=True)


async def test_a_mail_server_that_is_away_is_not_named() -> None:
    mail = Mail(EngineSettings(smtp_host="127.0.0.1", smtp_port=closed_port()))
    with pytest.raises(NotDeliveredError) as caught:
        await mail.send("owner@example.com", "s", "t")
    assert str(caught.value) == "the mail server did not take it: it could not be reached"


async def test_the_text_of_a_mail_server_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    mail = Mail(EngineSettings(smtp_host="127.0.0.1"))

    def refuse(message: object) -> None:
        raise smtplib.SMTPSenderRefused(550, b"relay mx1.inner.example [10.0.0.7] says no", "leaseway@localhost")

    monkeypatch.setattr(mail, "_send", refuse)
    with pytest.raises(NotDeliveredError) as caught:
        await mail.send("owner@example.com", "s", "t")
    assert str(caught.value) == "the mail server did not take it: it answered 550"
