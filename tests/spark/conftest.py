"""One SparkSession for all tests of Spark, with the pinned connectors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from facade.stack.errors import StackError
from facade.stack.programs import find_java
from facade.stack.spark_submit import connectors
from spark.session import session
from tests.conftest import absent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark leaves its sockets to the garbage collector."""
    for item in items:
        if "tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """A session of 2 threads. One JVM serves all tests: it takes seconds to start."""
    try:
        find_java()
        jars = ",".join(map(str, connectors()))
    except StackError as error:
        absent(str(error))
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.default.parallelism": "2",
        "spark.sql.codegen.wholeStage": "false",  # Compiling costs more than these few rows.
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        made = session("leaseway tests", "local[2]", settings)
        made.sparkContext.setLogLevel("ERROR")
        yield made
        made.stop()
