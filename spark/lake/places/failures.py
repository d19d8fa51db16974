"""What a catalog or the place of the tables complained of. Must not import PySpark."""

from __future__ import annotations

from spark.frames.failures import causes_of

# A catalog in a database or behind REST, and S3.
_TELLING = ("org.postgresql.", "org.apache.iceberg.exceptions.", "software.amazon.awssdk.", "org.sqlite.")


def table_failure(error: BaseException) -> str | None:
    """What made a job fail over its tables, in one line: `PSQLException: FATAL: ...`; None =
    something else.
    """
    found = None
    for name, java in causes_of(error):
        if name.startswith(_TELLING):
            found = f"{name.rpartition('.')[2]}: {str(java.getMessage()).partition(chr(10))[0]}"
    return found
