"""HTTPS: a real worker with a certificate of a test's authority, which is changed while it runs."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from facade.config import Settings
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from facade.programs.stack.data.certificate import Certificate, certificate_of
from facade.programs.stack.data.leftovers import leftovers
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.safety import refuse_unsafe
from tests.certificates import Certificates
from tests.conftest import StartUp
from tests.services import Up


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the service is told of."""
    return tmp_path_factory.mktemp("served") / "tls.pem"


@pytest.fixture(scope="module", params=["off", "require"])
def native(request: pytest.FixtureRequest) -> str:
    """Who serves: uvicorn, or the library."""
    if request.param == "require":
        request.getfixturevalue("library")
    return str(request.param)


@pytest.fixture(scope="module")
def up(native: str, leaseway_up_module: StartUp, authority: Certificates, served: Path) -> Up:
    served.write_bytes(authority.server.read_bytes())
    environment = {"LEASEWAY_TLS_CERT": str(served), "LEASEWAY_TLS_KEY": str(served), "LEASEWAY_NATIVE": native}
    started = leaseway_up_module("--rocketmq-port", "0", environment=environment)
    started.wait_line("ready after", 120)
    return started


def context_of(authority: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.ca))


def rocketmq_port(up: Up) -> int:
    return int(up.run["rocketmq"].rpartition(":")[2])


def shown(up: Up, authority: Certificates, port: int | None = None) -> str:
    """The name in the certificate of a new connection, to the RocketMQ port by HTTP/2."""
    context = context_of(authority)
    if port is not None:
        context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port or up.port), timeout=5) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.selected_alpn_protocol() == (None if port is None else "h2")
        found: Any = tls.getpeercert()
        return str(found["subject"][0][0][1])


def test_requests_go_over_tls(up: Up, authority: Certificates) -> None:
    assert up.run["endpoint"] == f"https://127.0.0.1:{up.port}"
    connection = http.client.HTTPSConnection("127.0.0.1", up.port, timeout=30, context=context_of(authority))
    with contextlib.closing(connection):

        def call(path: str, body: object, **headers: str) -> tuple[int, dict[str, str]]:
            connection.request("POST", path, json.dumps(body).encode(), {"content-type": "application/json", **headers})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        assert call("/v1/queues", {"name": "q"})[0] == 201
        assert call("/v1/queues/q/messages", {"messages": [{"body": "x" * 200_000}]})[0] == 200
        assert call("/v1/queues/q/receive", {"wait_seconds": 5})[1]["messages"][0]["body"] == "x" * 200_000  # type: ignore[index]
        target = {"content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.GetQueueUrl"}
        assert call("/", {"QueueName": "q"}, **target)[1]["QueueUrl"].startswith(f"https://127.0.0.1:{up.port}/")


def test_rocketmq_clients_are_served_over_tls_alone(up: Up, authority: Certificates) -> None:
    target = f"127.0.0.1:{rocketmq_port(up)}"
    channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(authority.ca.read_bytes()))
    method, client = "/apache.rocketmq.v2.MessagingService/Heartbeat", (("x-mq-client-id", "tls"),)
    with contextlib.closing(channel):
        answer = channel.unary_unary(method)(b"", metadata=client, timeout=20)
        assert pb.HeartbeatResponse.FromString(answer).status.code == Code.OK
    plain = grpc.insecure_channel(target)
    with contextlib.closing(plain), pytest.raises(grpc.RpcError):
        plain.unary_unary(method)(b"", metadata=client, timeout=5)


@pytest.mark.parametrize(
    ("version", "taken"),
    [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_tls_is_refused(up: Up, authority: Certificates, version: ssl.TLSVersion, taken: bool) -> None:
    context = context_of(authority)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    with socket.create_connection(("127.0.0.1", up.port), timeout=5) as raw:
        if taken:
            context.wrap_socket(raw, server_hostname="127.0.0.1").close()
        else:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(raw, server_hostname="127.0.0.1")


def test_plain_http_and_half_a_handshake_are_cut_off(up: Up, native: str, authority: Certificates) -> None:
    with (
        socket.create_connection(("127.0.0.1", up.port), timeout=20) as plain,
        socket.create_connection(("127.0.0.1", up.port), timeout=20) as silent,
    ):
        plain.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"200" not in plain.recv(100)
        if native == "require":  # uvicorn waits for a minute
            began = time.monotonic()
            assert silent.recv(100) == b""
            assert time.monotonic() - began < 15
    assert shown(up, authority) == "server"


def test_a_new_certificate_is_served_without_a_restart_and_a_broken_one_is_not(
    up: Up, authority: Certificates, served: Path
) -> None:
    assert shown(up, authority) == shown(up, authority, rocketmq_port(up)) == "server"
    with (
        socket.create_connection(("127.0.0.1", up.port), timeout=20) as raw,
        context_of(authority).wrap_socket(raw, server_hostname="127.0.0.1") as old,
    ):
        served.write_text("half a certif")
        time.sleep(2.5)
        assert shown(up, authority) == "server"
        renewed = served.with_name("renewed.pem")
        renewed.write_bytes(authority.issue("renewed").read_bytes())
        renewed.replace(served)
        end = time.monotonic() + 10
        while {shown(up, authority), shown(up, authority, rocketmq_port(up))} != {"renewed"}:
            assert time.monotonic() < end
            time.sleep(0.2)
        old.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert old.recv(100).startswith(b"HTTP/1.1 200")


def test_what_cant_be_served_stops_the_start(tmp_path: Path, authority: Certificates) -> None:
    other = tmp_path / "other.pem"
    other.write_text("no certificate")
    good, missing = str(authority.server), str(tmp_path / "missing.pem")
    for cert, key in (
        (good, ""),
        ("", good),
        (missing, missing),
        (str(other), str(other)),
        (good, str(authority.client)),
        (str(authority.ca), good),
    ):
        with pytest.raises(StackError, match="LEASEWAY_TLS_CERT"):
            refuse_unsafe(Settings.read({}, tls_cert=cert, tls_key=key))
    assert certificate_of("", "") is None
    assert isinstance(certificate_of(good, good), Certificate)


def test_a_key_that_only_python_can_use_stops_a_start_that_requires_the_library(
    library: None, leaseway_up: StartUp, authority: Certificates
) -> None:
    odd = str(authority.issue("odd", ec.SECP521R1()))
    up = leaseway_up(environment={"LEASEWAY_TLS_CERT": odd, "LEASEWAY_TLS_KEY": odd, "LEASEWAY_NATIVE": "require"})

    assert up.wait_end() == 2
    assert len(up.lines) == 1
    assert "LEASEWAY_NATIVE=require, but the library can't use LEASEWAY_TLS_CERT and LEASEWAY_TLS_KEY" in up.text
    assert leftovers(up.data) == []
