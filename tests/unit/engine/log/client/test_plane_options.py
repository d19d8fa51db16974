"""What the plane is told of Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificates

from engine.errors import LogUnavailable
from engine.log.client.plane_options import plane_options
from engine.log.kafka_errors import MISSING, MOVING, REFUSED, REPEATED, UNKNOWN, engine_error
from tests.certificates import Certificates
from tests.plane_kafka import plane_kafka

PLACE = "127.0.0.1:1"


def test_what_may_be_sent_again_was_surely_not_stored() -> None:
    assert MISSING < REPEATED < REFUSED
    # Those of the client itself are no answers of a broker.
    assert {code for code in UNKNOWN if code > 0} == MISSING
    assert {code for code in MOVING if code in REFUSED} < REPEATED
    # Written, or maybe: by a broker whose disk failed, or before replicas or a leader had it.
    for code in (
        KafkaError.UNKNOWN,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.KAFKA_STORAGE_ERROR,
    ):
        assert code not in REFUSED
    assert all(isinstance(engine_error(KafkaError(code)), Exception) for code in REFUSED)


@pytest.mark.usefixtures("library")
def test_the_library_takes_all_that_it_is_told() -> None:
    with plane_kafka(plane_options(PLACE, "plane", 10_000, {})) as plane:
        assert not plane.is_reached
    for name in plane_options(PLACE, "plane", 10_000, {}):
        if name != "client.id":
            options = plane_options(PLACE, "plane", 10_000, {}) | {name: ""}
            with pytest.raises(ValueError, match=name), plane_kafka(options):
                pass


def test_keys_are_opened(tmp_path: Path) -> None:
    authority = Certificates(tmp_path)
    locked = str(authority.locked("locked", "p"))
    found = plane_options(
        PLACE, "plane", 1, {"ssl.certificate.location": locked, "ssl.key.location": locked, "ssl.key.password": "p"}
    )
    load_pem_private_key(found["ssl.key.pem"].encode(), None)
    assert (
        found["ssl.certificate.location"] == locked
        and "ssl.key.location" not in found
        and "ssl.key.password" not in found
    )
    packed = {"ssl.keystore.location": str(authority.packed("packed", "p")), "ssl.keystore.password": "p"}
    found = plane_options(PLACE, "plane", 1, packed)
    load_pem_private_key(found["ssl.key.pem"].encode(), None)
    assert len(load_pem_x509_certificates(found["ssl.certificate.pem"].encode())) == 1
    assert not packed.keys() & found.keys()
    for wrong in (packed | {"ssl.keystore.password": "q"}, {"ssl.key.location": locked, "ssl.key.password": "q"}):
        with pytest.raises(LogUnavailable, match="can't be opened"):
            plane_options(PLACE, "plane", 1, wrong)


def test_without_an_authority_those_of_the_system_count() -> None:
    assert "ssl.ca.location" not in plane_options(PLACE, "plane", 1, {})
    assert plane_options(PLACE, "plane", 1, {"security.protocol": "SASL_SSL"})["ssl.ca.location"]
    assert "ssl.ca.location" not in plane_options(PLACE, "plane", 1, {"security.protocol": "SSL", "ssl.ca.pem": "x"})
