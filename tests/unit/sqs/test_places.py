"""Where a request came to: URLs behind a proxy, signatures for the proxy's address, and names in
namespaces.
"""

from __future__ import annotations

from typing import Any, cast

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from engine.engine import Engine
from engine.rules.limits import MAX_QUEUE_NAME, check_name
from engine.settings import BadSetting
from facade.app import create_app
from facade.config import Settings
from facade.dialects.sqs.queues.names import Place
from schemas.topics import queue_topic
from tests.unit.facade.double import QUEUE, RecordingEngine

TARGET = {"x-amz-target": "AmazonSQS.GetQueueUrl"}
ASK = b'{"QueueName": "orders"}'


async def ask(settings: Settings, headers: dict[str, str], content: bytes = ASK, path: str = "/") -> httpx.Response:
    engine = RecordingEngine()
    engine.answers["get_queue"] = QUEUE
    transport = httpx.ASGITransport(create_app(settings, cast(Engine, engine)))
    async with httpx.AsyncClient(transport=transport, base_url="http://inner.localhost:9400") as client:
        return await client.post(path, content=content, headers={**TARGET, **headers})


async def url(settings: Settings, **headers: str) -> str:
    return str(
        (await ask(settings, {name.replace("_", "-"): value for name, value in headers.items()})).json()["QueueUrl"]
    )


PROTO, HOST, PORT = "x_forwarded_proto", "x_forwarded_host", "x_forwarded_port"


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({}, "http://inner.localhost:9400"),
        ({PROTO: "https"}, "https://inner.localhost:9400"),
        ({PROTO: "HTTPS", HOST: "queues.example"}, "https://queues.example"),
        ({PROTO: "https", HOST: "queues.example", PORT: "443"}, "https://queues.example"),
        ({PROTO: "https", HOST: "queues.example", PORT: "8443"}, "https://queues.example:8443"),
        ({PROTO: "https", HOST: "queues.example:8443", PORT: "443"}, "https://queues.example:8443"),
        ({PROTO: "https", HOST: "queues.example:443"}, "https://queues.example"),
        ({PROTO: "https", PORT: "443"}, "https://inner.localhost"),
        ({PROTO: "http", PORT: "80"}, "http://inner.localhost"),
        ({PROTO: "https,http", HOST: "first.example, second.example", PORT: "443, 80"}, "https://first.example"),
        ({PROTO: "https", HOST: "[2001:db8::1]:8443"}, "https://[2001:db8::1]:8443"),
        ({PROTO: "ftp", HOST: "a b/<script>", PORT: "99999"}, "http://inner.localhost:9400"),
    ],
)
async def test_a_trusted_proxy_says_what_the_client_called(headers: dict[str, str], base: str) -> None:
    assert await url(Settings(trust_proxy="yes"), **headers) == f"{base}/000000000000/orders"


async def test_nobody_is_trusted_unasked() -> None:
    headers = {PROTO: "https", HOST: "queues.example", PORT: "443"}

    assert await url(Settings(), **headers) == "http://inner.localhost:9400/000000000000/orders"


@pytest.mark.parametrize(("trust", "status"), [("yes", 200), ("no", 403)])
async def test_a_signature_is_for_the_address_that_the_client_called(trust: str, status: int) -> None:
    request = AWSRequest("POST", "https://queues.example:8443/", headers=TARGET, data=ASK)
    SigV4Auth(Credentials("shop", "secret"), "sqs", "us-east-1").add_auth(request)
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-host": "queues.example", "x-forwarded-port": "8443"}
    headers = {**{name.lower(): str(value) for name, value in request.headers.items()}, **forwarded}
    response = await ask(Settings(auth="required", admin_key_secret="s", trust_proxy=trust), headers)

    assert response.status_code == status, response.text


def signed(key_id: str, region: str) -> dict[str, str]:
    return {
        "authorization": f"AWS4-HMAC-SHA256 Credential={key_id}/20260101/{region}/sqs/aws4_request, "
        "SignedHeaders=host, Signature=0"
    }


@pytest.mark.parametrize(
    ("namespaces", "headers", "path", "queue", "account"),
    [
        ("", signed("111111111111", "eu-west-1"), "/", "orders", "000000000000"),
        ("account", signed("111111111111", "eu-west-1"), "/", "111111111111.orders", "111111111111"),
        ("region", signed("111111111111", "eu-west-1"), "/", "eu-west-1.orders", "000000000000"),
        ("account,region", signed("111111111111", "eu-west-1"), "/", "111111111111.eu-west-1.orders", "111111111111"),
        ("account,region", signed("shop", "eu-west-1"), "/", "000000000000.eu-west-1.orders", "000000000000"),
        ("account,region", {}, "/", "000000000000.us-east-1.orders", "000000000000"),
        (
            "account,region",
            signed("shop", "eu-west-1"),
            "/222222222222/x",
            "222222222222.eu-west-1.orders",
            "222222222222",
        ),
    ],
)
async def test_account_and_region_are_part_of_the_engines_name(
    namespaces: str, headers: dict[str, str], path: str, queue: str, account: str
) -> None:
    engine = RecordingEngine()
    engine.answers["get_queue"] = QUEUE
    transport = httpx.ASGITransport(create_app(Settings(sqs_namespaces=namespaces), cast(Engine, engine)))
    async with httpx.AsyncClient(transport=transport, base_url="http://h.localhost") as client:
        response = await client.post(path, content=ASK, headers={**TARGET, **headers})

    assert engine.calls[-1][2] == queue
    assert response.json() == {"QueueUrl": f"http://h.localhost/{account}/orders"}


async def test_a_region_that_can_not_be_one_is_refused() -> None:
    response = await ask(Settings(sqs_namespaces="region"), signed("shop", "EU.west"))

    assert (response.status_code, response.json()["message"]) == (
        403,
        "Credential should be scoped to a valid region, not 'EU.west'.",
    )


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(
        BadSetting, match="LEASEWAY_SQS_NAMESPACES must be empty or account or region or account,region, given 'both'"
    ):
        Settings(sqs_namespaces="both")
    with pytest.raises(BadSetting, match="LEASEWAY_TRUST_PROXY must be no or yes, given 'always'"):
        Settings(trust_proxy="always")


accounts = st.from_regex(r"[0-9]{12}", fullmatch=True)
regions = st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True)
names = st.from_regex(r"[A-Za-z0-9_-]{1,75}(\.fifo)?(@[A-Za-z0-9_-]{1,80})?", fullmatch=True)
places = st.builds(Place, st.just("http://h.localhost"), accounts, regions, st.booleans(), st.booleans())


@given(places, accounts, regions, names)
def test_a_name_survives_the_way_to_the_engine_and_back(place: Place, account: str, region: str, name: str) -> None:
    at = place.address(name, account, region)
    url, arn = place.url(at.name), place.arn(at.name)

    assert place.name(at.name) == name
    shown = (region if place.by_region else place.region, account if place.by_account else place.account)
    assert url.endswith(f"/{shown[1]}/{name}")
    assert arn == f"arn:aws:sqs:{shown[0]}:{shown[1]}:{name}"
    assert place.of_arn(arn) == at.name
    of_url = place.of_url(url)
    assert of_url == (at if not place.by_region else place.address(name, account))
    if not at.queue.startswith("-"):
        check_name("name", at.queue)
        assert len(at.queue) <= MAX_QUEUE_NAME and len(queue_topic("leaseway", at.queue)) < 249


@given(st.tuples(accounts, regions, names), st.tuples(accounts, regions, names))
def test_two_names_are_one_queue_only_if_they_are_the_same(
    first: tuple[str, str, str], second: tuple[str, str, str]
) -> None:
    place = Place("http://h.localhost", "000000000000", "us-east-1", True, True)
    queues: list[Any] = [place.address(name, account, region) for account, region, name in (first, second)]

    assert (queues[0] == queues[1]) == (first == second)
    flat = [at.name.replace(".", "_") for at in queues]  # as Kafka compares the names of topics
    apart = first[:2] != second[:2] or first[2].replace(".", "_") != second[2].replace(".", "_")
    assert (flat[0] != flat[1]) == apart


def test_where_keys_are_of_accounts_an_account_in_a_url_is_that_account() -> None:
    plain = Place("http://h.localhost", "000000000000", "us-east-1")
    ours, default = plain.of("111122223333"), plain.of("")
    for place, account in ((ours, "111122223333"), (default, "000000000000")):
        assert place.url("orders") == f"http://h.localhost/{account}/orders"
        assert place.arn("orders") == f"arn:aws:sqs:us-east-1:{account}:orders"
        for name in ("orders", "444455556666.orders", *(("000000000000.orders",) if place is ours else ())):
            assert place.of_url(place.url(name)).queue == name
            assert place.of_arn(place.arn(name)) == name
    assert ours.of_url("http://elsewhere/000000000000/orders").queue == "000000000000.orders"
    assert default.of_url("http://elsewhere/111122223333/orders").queue == "111122223333.orders"
    assert ours.principal("111122223333", "bob") == "bob"
    assert ours.principal("444455556666", "bob") == "444455556666.bob"
    assert ours.principal("000000000000", "bob") == "000000000000.bob"
    assert plain.principal("444455556666", "bob") == "bob"
    by_names = Place("http://h.localhost", "000000000000", "us-east-1", by_account=True)
    assert by_names.of("") is by_names
    regional = Place("http://h.localhost", "000000000000", "us-east-1", by_region=True).of("111122223333")
    assert regional.queue("orders") == "us-east-1.orders"
    assert regional.url("444455556666.eu-west-1.orders") == "http://h.localhost/444455556666/orders"
    assert regional.arn("444455556666.eu-west-1.orders") == "arn:aws:sqs:eu-west-1:444455556666:orders"
