"""docker-compose.yml and the embedded stack say the same; where there is a Docker engine,
containers prove it.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.settings import PREFIX, file_variable_of, variable_of
from facade.config import Settings
from facade.http.sockets import library
from facade.programs.console.options import add_arguments, order_of
from facade.programs.stack.processes.jars import pinned_version
from facade.programs.stack.processes.settings import BROKER_PROPERTIES, REDIS_OPTIONS, replication
from facade.programs.stack.safety import refuse_unsafe

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
ONE, THREE = ["kafka"], ["kafka-1", "kafka-2", "kafka-3"]
# What depends on the place: addresses, names, folders.
PLACES = {"LISTENERS", "ADVERTISED_LISTENERS", "CONTROLLER_QUORUM_VOTERS", "LOG_DIRS", "NODE_ID", "HEAP_OPTS"}


def as_variable(name: str) -> str:
    """The image's rule: a property's variable is KAFKA_ and its name in capitals with _ for each
    dot.
    """
    return "KAFKA_" + name.replace(".", "_").upper()


def broker_settings(service: str) -> dict[str, str]:
    environment = SERVICES[service]["environment"]
    return {name: value for name, value in environment.items() if name.startswith("KAFKA_") and name[6:] not in PLACES}


@pytest.mark.parametrize(("service", "brokers"), [(name, 1) for name in ONE] + [(name, 3) for name in THREE])
def test_a_composed_broker_is_told_what_the_embedded_one_is(service: str, brokers: int) -> None:
    # Containers are reached over a network of their own, so their listeners are plain.
    roles = {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    expected = roles | BROKER_PROPERTIES | replication(brokers)

    assert broker_settings(service) == {as_variable(name): value for name, value in expected.items()}


def test_the_three_brokers_are_one_quorum_with_their_own_numbers() -> None:
    brokers = [SERVICES[name]["environment"] for name in THREE]

    assert [broker["KAFKA_NODE_ID"] for broker in brokers] == ["1", "2", "3"]
    assert {broker["KAFKA_CONTROLLER_QUORUM_VOTERS"] for broker in brokers} == {
        "1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"
    }
    assert len({broker["CLUSTER_ID"] for broker in brokers}) == 1


def test_the_composed_broker_has_the_embedded_one_s_version() -> None:
    images = {SERVICES[name]["image"] for name in ONE + THREE}

    assert {image.partition("@")[0] for image in images} == {f"apache/kafka:{pinned_version('kafka_2.13')}"}


def test_every_image_and_action_is_named_by_what_it_is() -> None:
    """A tag can be moved to another image, and that of an action to another commit."""
    images = [service["image"] for service in SERVICES.values() if "image" in service]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    workflows = [path.read_text() for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
    images += [image for text in workflows for image in re.findall(r"(?:python|alpine|debian):\S+(?= )", text)]
    actions = [action for text in workflows for action in re.findall(r"uses: (\S+)", text)]

    assert len(images) >= 8 and len(actions) >= 6
    assert [image for image in images if not re.search(r"@sha256:[0-9a-f]{64}$", image)] == []
    assert [action for action in actions if not re.search(r"@[0-9a-f]{40}$", action)] == []


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_no_container_has_a_capability_or_writes_outside_of_its_volumes(service: str) -> None:
    given = SERVICES[service]

    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"] and "cap_add" not in given and not given.get("privileged")
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in given["tmpfs"]


def test_no_secret_is_in_an_environment() -> None:
    secrets = {f"{variable_of(field.name)}" for field in dataclasses.fields(Settings) if field.metadata["secret"]}
    given = {name for service in SERVICES.values() for name in service.get("environment", {})}

    assert not secrets & given
    assert {name.removesuffix("_FILE") for name in given if name.endswith("_FILE")} == {
        "LEASEWAY_SECRET",
        "LEASEWAY_ADMIN_KEY_SECRET",
    }


@pytest.mark.parametrize("service", ["redis", "redis-three"])
def test_a_composed_redis_is_told_what_the_embedded_one_is(service: str) -> None:
    program, *words = SERVICES[service]["command"]

    assert program == "redis-server"
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        f"--{name}": value for name, value in REDIS_OPTIONS.items()
    }


@pytest.mark.parametrize("service", ["facade", "facade-three", "spark"])
def test_a_composed_facade_is_given_settings_that_exist(service: str) -> None:
    known = {PREFIX + field.name.upper() for field in dataclasses.fields(Settings)}
    known |= {file_variable_of(field) for field in dataclasses.fields(Settings)}
    given = {name for name in SERVICES[service]["environment"] if name.startswith(PREFIX)}

    assert given
    assert given <= known


@pytest.mark.parametrize(("service", "brokers"), [("facade", ONE), ("facade-three", THREE)])
def test_a_composed_facade_starts_with_the_secrets_of_its_files_and_uses_its_own_services(
    service: str, brokers: list[str], tmp_path: Path
) -> None:
    # What compose would put in for ${NAME:-default}.
    given = {name: value for name, value in SERVICES[service]["environment"].items() if not str(value).startswith("${")}
    for name in SERVICES[service]["secrets"]:
        assert COMPOSE["secrets"][name] == {"file": f"./secrets/{name}"}
        (tmp_path / name).write_text("u8Xw-3kFq9_ZtR2mPb7L\n")
        variable = f"LEASEWAY_{name.upper()}_FILE"
        assert given[variable] == f"/run/secrets/{name}"
        given[variable] = str(tmp_path / name)

    settings = Settings.read(given)
    assert settings.secret == settings.admin_key_secret == "u8Xw-3kFq9_ZtR2mPb7L"

    refuse_unsafe(settings)
    assert settings.kafka_bootstrap == ",".join(f"{name}:9092" for name in brokers)
    assert settings.replication_factor == len(brokers)
    assert settings.flush_messages == Settings().flush_messages
    assert settings.redis_url == f"redis://{service.replace('facade', 'redis')}:6379/0"
    assert f"127.0.0.1:{9400 if service == 'facade' else 9401}:{settings.port}" in SERVICES[service]["ports"]


def test_the_composed_console_speaks_to_the_facade_which_leads_to_it(tmp_path: Path) -> None:
    given = SERVICES["console"]
    (name,) = given["secrets"]
    (tmp_path / name).write_text("u8Xw-3kFq9_ZtR2mPb7L\n")
    words = [word.replace("/run/secrets", str(tmp_path)) for word in given["command"]]
    parser = argparse.ArgumentParser()
    add_arguments(parser)

    order = order_of(parser.parse_args(words[1:]))

    assert COMPOSE["secrets"][name] == {"file": f"./secrets/{name}"} and order.key == "u8Xw-3kFq9_ZtR2mPb7L"
    facade = SERVICES["facade"]["environment"]
    assert order.endpoint == f"http://facade:{facade['LEASEWAY_PORT']}"
    assert not order.is_local
    assert given["ports"] == [f"127.0.0.1:{order.port}:{order.port}"]
    assert facade["LEASEWAY_CONSOLE_URL"] == f"http://127.0.0.1:{order.port}"
    assert "LEASEWAY_CONSOLE_URL" not in SERVICES["facade-three"]["environment"]


def test_profiles_are_spark_and_three_brokers_and_the_rest_is_the_default_stack() -> None:
    profiles = {name: service.get("profiles", []) for name, service in SERVICES.items()}

    assert {name for name, given in profiles.items() if not given} == {"kafka", "redis", "facade", "console"}
    assert {profile for given in profiles.values() for profile in given} == {"spark", "three-brokers"}


def test_the_readme_starts_the_service_over_three_brokers_and_says_where_it_is() -> None:
    text = (ROOT / "README.md").read_text()
    (command,) = re.findall(r"docker compose --profile three-brokers up *(\S*)`", text)

    assert command == "facade-three", (
        "without a service's name, the stack of one broker starts too, and has the port that people try"
    )
    assert set(SERVICES[command]["depends_on"]) == {*THREE, "redis-three"}
    port = SERVICES[command]["ports"][0].split(":")[1]
    assert f"http://127.0.0.1:{port}" in text


def test_the_docs_name_the_connectors_that_are_pinned() -> None:
    text = (ROOT / "docs" / "reference" / "analytics.md").read_text()

    for module in ("spark-sql-kafka-0-10_2.13", "spark-avro_2.13"):
        assert set(re.findall(rf"org\.apache\.spark:{module}:([\d.]+)", text)) == {pinned_version(module)}


def test_the_image_builds_from_files_that_are_there() -> None:
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("COPY")]
    copied = [line.split()[1:-1] for line in lines if "--from=" not in line]
    packages = {"schemas", "runtime", "state", "engine", "facade", "spark"}

    assert packages <= {name for names in copied for name in names}
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    # The library of the native front comes from a stage of its own, to where the loader looks.
    (built,) = [line.split()[-2:] for line in lines if "--from=front" in line]
    assert Path(built[0]).name == library.NAME and (ROOT / built[1]).resolve() == library.BESIDE.parent


def _docker_works() -> bool:
    docker = shutil.which("docker")
    return (
        bool(docker)
        and subprocess.run([str(docker), "info"], capture_output=True, timeout=20, check=False).returncode == 0
    )


@pytest.mark.docker
def test_the_composed_kafka_and_redis_come_up() -> None:
    # A Docker engine is not part of what CI promises, so this is skipped there too.
    if not _docker_works():
        pytest.skip("no Docker engine")
    from testcontainers.compose import DockerCompose  # slow to import, and needed here only

    with DockerCompose(str(ROOT), services=["kafka", "redis"], wait=True, env_file=".env.example") as compose:
        for service in ("kafka", "redis"):
            assert compose.get_container(service).Health == "healthy"
