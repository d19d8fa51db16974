"""One SparkSession for all tests of Spark, with the pinned connectors; a browser for the page."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.programs import find_java
from facade.programs.stack.processes.spark_submit import connectors, mapped, of_s3
from spark.frames.log import Log
from spark.frames.session import ADVICE, session
from spark.lake.places.warehouse import Warehouse
from tests.browser.chromium import Page, page
from tests.browser.fetch import browser
from tests.clients import NotFetched, fetched
from tests.conftest import absent
from tests.services import Services
from tests.spark.lake_log import Written, lake, written_day
from tests.tiers import QUICK_JVM

# To compile queries costs more than these few rows. What compares whole frames asks `as_users`.
QUICK_SQL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves its sockets to the garbage collector."""
    for item in items:
        if "tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def found_spark() -> str:
    """The class path of a driver, but for S3; a test that needs what is not here is skipped."""
    try:
        find_java()
        return ":".join(map(str, connectors()))
    except StackError as error:
        absent(str(error))


def _java_options() -> list[str]:
    """For the JVM of all tests. It holds some 500 MB, for which a collector with threads of its own
    took a quarter of the CPU.
    """
    return [QUICK_JVM, "-XX:+UseSerialGC", "-Xmn800m", "-XX:MetaspaceSize=512m", *mapped()]


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """A session of 2 threads. One JVM serves all tests: it takes seconds to start."""
    settings = {
        "spark.driver.extraClassPath": found_spark(),
        "spark.driver.memory": "2g",
        "spark.default.parallelism": "1",
        **QUICK_SQL,
        "spark.driver.extraJavaOptions": " ".join(_java_options()),
    }
    os.environ.update(of_s3(s3=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        made = session("leaseway tests", "local[2]", settings)
        made.sparkContext.setLogLevel("ERROR")
        yield made
        made.stop()


@contextlib.contextmanager
def as_users(*sessions: SparkSession) -> Iterator[None]:
    """Has sessions plan and run as those of users do: adaptive, compiled, in many parts."""
    for made in sessions:
        for name in QUICK_SQL:
            made.conf.unset(name)
        for name, value in ADVICE.items():
            made.conf.set(name, value)
    try:
        yield
    finally:
        for made in sessions:
            for name in ADVICE:
                made.conf.unset(name)
            for name, value in QUICK_SQL.items():
                made.conf.set(name, value)


def client_of(lock: Path) -> Path:
    """The folder with what a lock names; a test that needs what is not here is skipped."""
    try:
        return fetched(lock)
    except NotFetched as error:
        absent(str(error))


@pytest.fixture(scope="session")
def day(stack: Services) -> Written:
    """A log with all that tables hold, which no test changes (see `written_day`)."""
    return written_day(stack.bootstrap)


@pytest.fixture(scope="session")
def log(day: Written) -> Log:
    """Where that log is."""
    return day.log


@pytest.fixture(scope="session")
def warehouse(spark_session: SparkSession, day: Written, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Tables of that log, which no test changes."""
    folder = tmp_path_factory.mktemp("lake")
    lake(spark_session, day.log, folder).round()
    return Warehouse(folder)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Page]:
    """A tab of a headless Chromium."""
    try:
        program = browser()
    except NotFetched as error:
        absent(str(error))
    with page(program) as tab:
        yield tab
