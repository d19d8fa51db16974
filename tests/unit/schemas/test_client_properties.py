"""Properties of Kafka's Java client, as the service's client takes them."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from schemas.client_properties import BadProperty, for_librdkafka, parse

SCRAM = """
# How we get in.
security.protocol=SASL_SSL
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="leaseway" \\
  password="a \\"b\\" = c;";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/ca.pem
"""


def test_a_file_of_the_java_client_is_read() -> None:
    properties = parse(SCRAM.splitlines())
    assert properties["sasl.jaas.config"].startswith("org.apache.kafka.common.security.scram.ScramLoginModule required")
    assert for_librdkafka(properties) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "leaseway",
        "sasl.password": 'a "b" = c;',
        "ssl.ca.location": "/etc/ca.pem",
    }


def test_each_way_in_is_one_that_the_client_takes() -> None:
    """But for certificates, which are files."""
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password=p;"
    bearer = 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="all";'
    ways: list[dict[str, str]] = [
        {},
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": plain},
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": bearer,
            "sasl.oauthbearer.token.endpoint.url": "https://example.com/token",
            "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        },
    ]
    for way in ways:
        Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **for_librdkafka(way)}).close()
    assert for_librdkafka(ways[2])["sasl.password"] == "p"
    assert for_librdkafka(ways[3])["sasl.oauthbearer.client.secret"] == "s"


def test_a_certificate_of_the_client_is_pem_or_pkcs12() -> None:
    pem = {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": "/k.pem", "ssl.key.password": "p"}
    assert for_librdkafka(pem) == {
        "security.protocol": "SSL",
        "ssl.certificate.location": "/k.pem",
        "ssl.key.location": "/k.pem",
        "ssl.key.password": "p",
    }
    packed = {"security.protocol": "SSL", "ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"}
    assert for_librdkafka(packed) == {"security.protocol": "SSL", "ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sasl.password=hunter2", "sasl.password is no property"),
        ("security.protocol=TLS", "security.protocol must be one of"),
        ("security.protocol=SASL_SSL", "sasl.mechanism must be one of"),
        ("ssl.truststore.location=/a.jks", "PEM only"),
        ("ssl.keystore.location=/a.jks", "PEM and PKCS12 only"),
        ("sasl.jaas.config=hunter2", "must name one of"),
        ("sasl.jaas.config=x.PlainLoginModule required hunter2;", "options"),
        ('sasl.jaas.config=x.PlainLoginModule required hunter="hunter2";', "no option hunter "),
        ('sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required keyTab="hunter2";', "must name one of"),
    ],
)
def test_what_can_not_be_done_is_refused_without_its_value(line: str, why: str) -> None:
    with pytest.raises(BadProperty, match=why) as refused:
        for_librdkafka(parse([line]))
    assert "hunter2" not in str(refused.value)


def test_a_line_that_is_none_is_refused() -> None:
    for line in ("nothing", "=value"):
        with pytest.raises(BadProperty, match="NAME=VALUE"):
            parse([line])
