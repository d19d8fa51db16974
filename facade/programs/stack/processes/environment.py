"""What a child finds in its environment: nothing of ours that it does not need. Kafka and Redis get
no settings, and workers get theirs by a pipe, since an environment is read from outside and goes to
crash reports.
"""

from __future__ import annotations

from collections.abc import Mapping

# What programs of others need to find themselves, their language and their time.
_KEPT = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "JAVA_HOME"}
)
_KEPT_BEGIN = ("LC_", "JDK_JAVA_", "JAVA_TOOL_", "LW_")


def bare(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of Kafka and Redis."""
    return {name: value for name, value in environment.items() if name in _KEPT or name.startswith(_KEPT_BEGIN)}


def without(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The environment without what begins with a prefix."""
    return {name: value for name, value in environment.items() if not name.startswith(prefix)}
