"""Settings that Spark is told without having them in its command line."""

from __future__ import annotations

import os
from pathlib import Path

from facade.programs.stack.processes.spark_submit import _hidden


def test_a_secret_is_in_a_file_that_can_be_read_again_and_again_and_has_no_name() -> None:
    option, place, also = _hidden({"spark.x.password": 'pa ss\\w"ö'})
    try:
        assert (option, also) == ("--properties-file", "--load-spark-defaults")
        # spark-submit reads it twice: for the options of Java, and for those of Spark.
        for _ in range(2):
            assert Path(place).read_text() == 'spark.x.password pa\\u0020ss\\\\w\\"\\u00f6\n'
        number = int(place.rpartition("/")[2])
        assert os.get_inheritable(number) and os.fstat(number).st_nlink == 0
    finally:
        os.close(int(place.rpartition("/")[2]))
