"""Who gets into the embedded Kafka, and by what: passwords that a data folder keeps, and the files
that have them, which only the owner of the folder may read.

The service is the user SERVICE, by SCRAM: whoever takes the broker's port while it is away learns
nothing of the password. The broker speaks to its own controller as CONTROLLER, by PLAIN, for
Kafka's controllers can't do SCRAM; both are one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from facade.programs.stack.data.folder import DataFolder, replace

SERVICE, CONTROLLER = "leaseway", "controller"
MECHANISM = "SCRAM-SHA-256"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Credentials:
    """The passwords of a data folder."""

    service: str
    controller: str

    @classmethod
    def of(cls, folder: DataFolder) -> Credentials:
        """Made when they are not there yet."""
        return cls(folder.secret("kafka_secret"), folder.secret("controller_secret"))

    @property
    def scram(self) -> str:
        """The service's, for `kafka-storage format --add-scram`."""
        return f"{MECHANISM}=[name={SERVICE},password={self.service}]"

    def of_broker(self) -> dict[str, str]:
        """Returns the properties of the broker that have passwords."""
        return {
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.service.sasl.enabled.mechanisms": MECHANISM,
            "listener.name.service.scram-sha-256.sasl.jaas.config": _scram_login(self.service),
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f'{_PLAIN} required username="{CONTROLLER}" '
            f'password="{self.controller}" user_{CONTROLLER}="{self.controller}";',
        }


def client_file(folder: Path) -> Path:
    """Where the properties of the service's clients are."""
    return folder / "kafka.client.properties"


def write_client_file(folder: Path, credentials: Credentials) -> None:
    """Writes what the workers, Spark's jobs and tools of the folder's owner get in by."""
    lines = (
        "# Written at every start; changes are lost.",
        "security.protocol=SASL_PLAINTEXT",
        f"sasl.mechanism={MECHANISM}",
        f"sasl.jaas.config={_scram_login(credentials.service)}",
        "",
    )
    replace(client_file(folder), "\n".join(lines), mode=0o600)


def _scram_login(password: str) -> str:
    return f'{_SCRAM} required username="{SERVICE}" password="{password}";'
