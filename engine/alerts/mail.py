"""Sends mail through the SMTP server of the settings."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from engine.alerts.webhook import NotDeliveredError
from engine.settings import EngineSettings

# Of each step of the exchange.
TIMEOUT_S = 10.0
AT_A_TIME = 4


class Mail:
    """Mail of this worker; smtplib waits in threads of its own: a server that stands still must not
    keep a rebuild, which uses those of the loop, waiting.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(AT_A_TIME, "mail")

    @property
    def is_on(self) -> bool:
        """Whether there is a server to send through."""
        return bool(self._settings.smtp_host)

    async def send(self, to: str, subject: str, text: str) -> str:
        """Sends a message; what has taken it. Raises NotDeliveredError."""
        try:
            message = EmailMessage()
            message["From"], message["To"], message["Subject"] = self._settings.smtp_from, to, subject
            message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="leaseway.invalid")
            message["Auto-Submitted"] = "auto-generated"
            message.set_content(text)
            await asyncio.get_running_loop().run_in_executor(self._threads, self._send, message)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise NotDeliveredError(f"the mail server did not take it: {_reason(error)}") from error
        return "mail"

    def _send(self, message: EmailMessage) -> None:
        s = self._settings
        if s.smtp_tls == "tls":
            with smtplib.SMTP_SSL(s.smtp_host, s.smtp_port, timeout=TIMEOUT_S, context=ssl.create_default_context()) as server:
                self._give(server, message)
            return
        with smtplib.SMTP(s.smtp_host, s.smtp_port, timeout=TIMEOUT_S) as server:
            if s.smtp_tls == "starttls":
                server.starttls(context=ssl.create_default_context())
            self._give(server, message)

    def _give(self, server: smtplib.SMTP, message: EmailMessage) -> None:
        if self._settings.smtp_user:
            server.login(self._settings.smtp_user, self._settings.smtp_password)
        server.send_message(message)


def _reason(error: OSError | smtplib.SMTPException | ValueError) -> str:
    """Returns why, in words for the owner of a queue: a server's own text and the system's may name
    hosts and addresses of the network that the service is in.
    """
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = sorted({code for code, _ in error.recipients.values()})
        return f"it refused the recipient ({', '.join(map(str, codes))})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"it answered {error.smtp_code}"
    if isinstance(error, OSError) and not isinstance(error, smtplib.SMTPException):
        return "it could not be reached"
    return type(error).__name__
