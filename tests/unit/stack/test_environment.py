"""What children of the stack find in their environment."""

from __future__ import annotations

from facade.programs.stack.processes.environment import bare, without

GIVEN = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "JAVA_HOME": "/java",
    "JAVA_TOOL_OPTIONS": "-Dx=y",
    "LW_STACK_FOLDER": "/data",
    "LEASEWAY_SECRET": "s",
    "AWS_SECRET_ACCESS_KEY": "s",
    "DATABASE_URL": "s",
    "PATHS": "s",
}


def test_kafka_and_redis_get_what_programs_need_and_no_more() -> None:
    assert set(bare(GIVEN)) == {"PATH", "LC_ALL", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "LW_STACK_FOLDER"}


def test_a_worker_gets_no_setting_by_its_environment() -> None:
    assert without(GIVEN, "LEASEWAY_") == {name: value for name, value in GIVEN.items() if name != "LEASEWAY_SECRET"}
