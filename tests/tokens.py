"""An issuer of access tokens at https://127.0.0.1, as far as Kafka's client and broker need one: a
client's id and secret for a token, and the key that tokens are signed with.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE, SCOPE = "kafka of a test", "queues"
# Each client's secret, and for whom its tokens are.
CLIENTS = {"leaseway": ("a secret: of/a test", AUDIENCE), "mail": ("another secret", "a mail server")}
KEY_ID = "k1"


class Issuer:
    """What it knows and was asked: tokens are good for `lives_s`, `given` is how many it gave, and
    `scopes` are those that were asked for.
    """

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        self.url = ""
        self.lives_s = 300.0
        self.given = 0
        self.scopes: set[str] = set()

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        return f"{self.url}/keys"

    def keys(self) -> dict[str, Any]:
        """The public half of the key, for those who are shown tokens."""
        public = self._key.public_key().public_numbers()
        n, e = (_base64(number.to_bytes((number.bit_length() + 7) // 8)) for number in (public.n, public.e))
        return {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": KEY_ID, "n": n, "e": e}]}

    def answer(self, authorization: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and body for who asks for a token (RFC 6749, 4.4)."""
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        client = _client_of(authorization)
        if client is None:
            return 401, {"error": "invalid_client", "error_description": "no client has this secret"}
        self.given += 1
        self.scopes.add(form.get("scope", ""))
        return 200, {"access_token": self._token(client), "token_type": "Bearer", "expires_in": int(self.lives_s)}

    def _token(self, client: str) -> str:
        now, audience = time.time(), CLIENTS[client][1]
        claims = {
            "sub": client,
            "iss": self.url,
            "aud": audience,
            "scope": SCOPE,
            "iat": int(now),
            "exp": int(now + self.lives_s),
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{_base64(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _client_of(authorization: str) -> str | None:
    """Who asks, by HTTP Basic; None = a stranger."""
    kind, _, known = authorization.partition(" ")
    client, _, secret = base64.b64decode(known).decode().partition(":") if kind == "Basic" else ("", "", "")
    # RFC 6749 wants them form-urlencoded, and not every client does that.
    right = CLIENTS[client][0] if client in CLIENTS else None
    return client if right is not None and secret in {right, urllib.parse.quote_plus(right)} else None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextlib.contextmanager
def running_issuer(port: int, certificate: Path) -> Iterator[Issuer]:
    """An issuer that answers at `port` until the end; `certificate` has the key too."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._reply(*issuer.answer(self.headers.get("authorization", ""), dict(urllib.parse.parse_qsl(body))))

        def do_GET(self) -> None:
            self._reply(200, issuer.keys())

        def _reply(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        # The handshake is for the thread of the connection: one that is not made holds up no other.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        issuer.url = f"https://127.0.0.1:{port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="issuer")
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
