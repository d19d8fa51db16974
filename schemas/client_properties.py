"""Properties of Kafka's clients, in the words of the Java client, which Spark's jobs use, and as
the service's own client (librdkafka) takes them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping


class BadProperty(ValueError):
    """A line or a property can't be used; the text says which and why, and has no value of it,
    which may be a password.
    """


# What both clients call the same.
_SAME = frozenset(
    {
        *("security.protocol", "client.dns.lookup", "connections.max.idle.ms", "metadata.max.age.ms"),
        *(
            "socket.connection.setup.timeout.ms",
            "ssl.cipher.suites",
            "ssl.key.password",
            "sasl.oauthbearer.token.endpoint.url",
        ),
    }
)
_RENAMED = {
    "sasl.mechanism": "sasl.mechanism",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope": "sasl.oauthbearer.scope",
    "ssl.truststore.location": "ssl.ca.location",
}
# Certificates and keys themselves, not files of them.
_PEM = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
# What librdkafka reads, of what `for_librdkafka` returns.
FILES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "https.ca.location",
)
# What says how others are to be read, and what only the Java client needs.
_READ_WITH_OTHERS = frozenset({"ssl.truststore.type", "ssl.keystore.type", "ssl.keystore.password"})
_JAVA_ONLY = frozenset({"sasl.login.callback.handler.class"})
_MECHANISMS = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"})
_PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})

_LOGIN = re.compile(r"\s*(?:[\w$]+\.)*(\w+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", re.DOTALL)
_OPTION = re.compile(r"([\w.]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;\"']+))\s*")
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")
_USERS = {"username": "sasl.username", "password": "sasl.password"}
_TOKENS = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
    "ssl.truststore.location": "https.ca.location",
    "ssl.truststore.type": "",  # says how the other is to be read
}
_LOGINS: dict[str, dict[str, str]] = {
    "PlainLoginModule": _USERS,
    "ScramLoginModule": _USERS,
    "OAuthBearerLoginModule": _TOKENS,
}


def parse(lines: Iterable[str]) -> dict[str, str]:
    r"""`name=value` lines as a mapping. A backslash at the end of a line goes on in the next; empty
    lines and those that begin with # say nothing. `\n` in certificates and keys ends a line of
    them. Raises BadProperty.
    """
    found: dict[str, str] = {}
    for line in _joined(lines):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, mark, value = text.partition("=")
        name = name.strip()
        if not mark or not name:
            raise BadProperty(f"{name[:40]!r} is not NAME=VALUE")
        found[name] = value.strip().replace("\\n", "\n") if name in _PEM else value.strip()
    return found


def _joined(lines: Iterable[str]) -> Iterable[str]:
    begun = ""
    for line in lines:
        if line.rstrip().endswith("\\"):
            begun += line.rstrip()[:-1] + " "
        else:
            yield begun + line
            begun = ""
    if begun:
        yield begun


def for_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """The same for librdkafka. Raises BadProperty for what it can't do, and for names that are not
    known here: a security setting that nobody reads is none.
    """
    found: dict[str, str] = {}
    for name, value in properties.items():
        if name in _SAME:
            found[name] = value
        elif name in _RENAMED:
            found[_RENAMED[name]] = value
        elif name in _PEM:
            found[_PEM[name]] = _lines_of(name, value)
        elif name == "ssl.endpoint.identification.algorithm":
            found[name] = value or "none"
        elif name == "sasl.jaas.config":
            found.update(_login(value))
        elif name == "ssl.keystore.location":
            found.update(_key_store(value, properties))
        elif name not in _READ_WITH_OTHERS | _JAVA_ONLY:
            raise BadProperty(f"{name} is no property that the service knows")
    _check(properties, found)
    return found


def _check(properties: Mapping[str, str], found: dict[str, str]) -> None:
    protocol, mechanism = found.get("security.protocol", "PLAINTEXT"), found.get("sasl.mechanism")
    if protocol not in _PROTOCOLS:
        raise BadProperty(f"security.protocol must be one of {', '.join(sorted(_PROTOCOLS))}, given {protocol!r}")
    if protocol.startswith("SASL_") and mechanism not in _MECHANISMS:
        raise BadProperty(f"sasl.mechanism must be one of {', '.join(sorted(_MECHANISMS))}, given {mechanism!r}")
    if "ssl.truststore.location" in properties and properties.get("ssl.truststore.type") != "PEM":
        raise BadProperty("ssl.truststore.location: the service reads PEM only, so say ssl.truststore.type=PEM")
    if mechanism == "OAUTHBEARER":
        found["sasl.oauthbearer.method"] = "oidc"


def _login(text: str) -> dict[str, str]:
    """What a line for JAAS says. Raises BadProperty."""
    match = _LOGIN.fullmatch(text)
    names = _LOGINS.get(match[1]) if match else None
    if match is None or names is None:
        raise BadProperty(f"sasl.jaas.config must name one of {', '.join(_LOGINS)}, and be required")
    options = _options(match[1], names, match[2].strip())
    if "ssl.truststore.location" in options and options.get("ssl.truststore.type") != "PEM":
        raise BadProperty(
            "sasl.jaas.config: the service reads PEM only, so say ssl.truststore.type=PEM with ssl.truststore.location"
        )
    return {names[name]: value for name, value in options.items() if names[name]}


def _options(module: str, names: Mapping[str, str], rest: str) -> dict[str, str]:
    """The options of a login module by name. Raises BadProperty."""
    found: dict[str, str] = {}
    while rest:
        option = _OPTION.match(rest)
        if option is None:
            raise BadProperty('sasl.jaas.config: its options are not name="value"')
        if option[1] not in names:
            raise BadProperty(f"sasl.jaas.config: {module} has no option {option[1][:40]} that the service knows")
        quoted = option[2] if option[2] is not None else option[3]
        found[option[1]] = option[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        rest = rest[option.end() :]
    return found


def _lines_of(name: str, pem: str) -> str:
    """PEM, of which the file may have made one line: Java's client reads that, librdkafka does not.
    Raises BadProperty.
    """
    lines: list[str] = []
    for block in _BLOCK.finditer(pem):
        lines += [
            f"-----BEGIN {block[1]}-----",
            *textwrap.wrap(re.sub(r"\s", "", block[2]), 64),
            f"-----END {block[1]}-----",
            "",
        ]
    if not lines:
        raise BadProperty(f"{name}: it has nothing that begins with -----BEGIN and ends with -----END in PEM")
    return "\n".join(lines)


def _pem_key_store(place: str, properties: Mapping[str, str]) -> dict[str, str]:
    # Key and certificates are in one file, of which the client reads both.
    return {"ssl.certificate.location": place, "ssl.key.location": place}


def _packed_key_store(place: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.keystore.location": place, "ssl.keystore.password": properties.get("ssl.keystore.password", "")}


_KEY_STORES: dict[str, Callable[[str, Mapping[str, str]], dict[str, str]]] = {
    "PEM": _pem_key_store,
    "PKCS12": _packed_key_store,
}


def _key_store(place: str, properties: Mapping[str, str]) -> dict[str, str]:
    """A client's certificate and key. Raises BadProperty."""
    read = _KEY_STORES.get(properties.get("ssl.keystore.type", ""))
    if read is None:
        raise BadProperty("ssl.keystore.location: the service reads PEM and PKCS12 only, so say ssl.keystore.type")
    return read(place, properties)
