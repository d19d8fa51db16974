"""Properties of Kafka's Java client, as the service's client takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from engine.settings import BadSetting, EngineSettings
from schemas.client_properties import BadProperty, for_librdkafka, parse

OAUTH = "org.apache.kafka.common.security.oauthbearer"
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
    bearer = (
        'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="i" '
        'clientSecret="s" scope="all";'
    )
    ways: list[dict[str, str]] = [
        {},
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": plain},
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": bearer,
            "sasl.oauthbearer.token.endpoint.url": "https://example.com/token",
            "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
        },
    ]
    for way in ways:
        Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **for_librdkafka(way)}).close()
    assert for_librdkafka(ways[2])["sasl.password"] == "p"
    assert for_librdkafka(ways[3])["sasl.oauthbearer.client.secret"] == "s"


def test_a_certificate_of_the_client_is_pem_or_pkcs12() -> None:
    pem = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/k.pem",
        "ssl.key.password": "p",
    }
    assert for_librdkafka(pem) == {
        "security.protocol": "SSL",
        "ssl.certificate.location": "/k.pem",
        "ssl.key.location": "/k.pem",
        "ssl.key.password": "p",
    }
    packed = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": "/k.p12",
        "ssl.keystore.password": "p",
    }
    assert for_librdkafka(packed) == {
        "security.protocol": "SSL",
        "ssl.keystore.location": "/k.p12",
        "ssl.keystore.password": "p",
    }


@pytest.mark.parametrize("end", [" ", r"\n", " \\\n"])
def test_certificates_within_the_file_get_their_lines_back(end: str) -> None:
    """Kafka's client for Java reads PEM in one line, librdkafka does not."""
    lines = ["-----BEGIN CERTIFICATE-----", "A" * 64, "B+/=", "-----END CERTIFICATE-----"]
    properties = parse(f"ssl.truststore.certificates={end.join(lines * 2)}".splitlines())
    found = for_librdkafka(properties)["ssl.ca.pem"]
    assert [line for line in found.split("\n") if line] == lines * 2
    assert "\\" not in properties["ssl.truststore.certificates"]  # which Java is given


def test_the_issuer_of_tokens_may_have_a_certificate_of_its_own() -> None:
    options = 'clientId="i" clientSecret="s" ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem"'
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"x.OAuthBearerLoginModule required {options};",
    }
    assert for_librdkafka(given) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "i",
        "sasl.oauthbearer.client.secret": "s",
        "https.ca.location": "/ca.pem",
    }


def test_a_file_that_cant_be_read_stops_the_start(tmp_path: Path) -> None:
    file, missing = tmp_path / "kafka.properties", tmp_path / "missing.pem"
    for lines in (
        f"ssl.truststore.type=PEM\nssl.truststore.location={missing}",
        f"ssl.keystore.type=PEM\nssl.keystore.location={missing}",
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={missing}",
    ):
        file.write_text(lines)
        with pytest.raises(BadSetting, match=f"LEASEWAY_KAFKA_CONFIG: No such file or directory: {missing}"):
            EngineSettings(kafka_config=str(file))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sasl.password=hunter2", "sasl.password is no property"),
        ("security.protocol=TLS", "security.protocol must be one of"),
        ("security.protocol=SASL_SSL", "sasl.mechanism must be one of"),
        ("ssl.truststore.location=/a.jks", "PEM only"),
        ("ssl.keystore.location=/a.jks", "PEM and PKCS12 only"),
        ("ssl.keystore.key=hunter2", "BEGIN"),
        ('sasl.jaas.config=x.OAuthBearerLoginModule required ssl.truststore.location="hunter2";', "PEM only"),
        ("sasl.jaas.config=hunter2", "must name one of"),
        ("sasl.jaas.config=x.PlainLoginModule required hunter2;", "options"),
        ('sasl.jaas.config=x.PlainLoginModule required hunter="hunter2";', "no option hunter "),
        (
            'sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required keyTab="hunter2";',
            "must name one of",
        ),
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
