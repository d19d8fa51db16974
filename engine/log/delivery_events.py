"""Wakes the event loop when a Kafka client has something to report, without a thread that waits for
it.

librdkafka writes to a file descriptor when the queue that `poll` serves gets its first entry, if it
is asked to (rdkafka.h, `rd_kafka_queue_io_event_enable`). The Python client has no call for that,
so the C library is asked here, by the client's pointer to its handle: the first field of the
object, in the version that is named below. Neighbours: `polled_producer` reads the descriptor. This
module must not know what is reported.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from importlib.metadata import version
from typing import Any

from confluent_kafka import Producer, cimpl

# Where its handle is in the object was read from the sources of this version; with another one we
# do not look.
KNOWN_CLIENT = "2.16.1"
_HANDLE_AT = object.__basicsize__
_BYTE = b"\0"


def _librdkafka() -> Any:
    library = ctypes.CDLL(cimpl.__file__)  # finds what the client itself is linked with
    library.rd_kafka_queue_get_main.argtypes = [ctypes.c_void_p]
    library.rd_kafka_queue_get_main.restype = ctypes.c_void_p
    library.rd_kafka_queue_destroy.argtypes = [ctypes.c_void_p]
    library.rd_kafka_queue_destroy.restype = None
    library.rd_kafka_queue_io_event_enable.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.rd_kafka_queue_io_event_enable.restype = None
    return library


class ReportEvents:
    """A descriptor that becomes readable when a producer has something for `poll` after it had
    nothing. Belongs to one thread.

    What it had before is not told: poll once after this was made.
    """

    def __init__(self, producer: Producer) -> None:
        self._library = _librdkafka()
        self._producer = producer  # the handle must outlive us
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._write_to(self._write)

    @staticmethod
    def known() -> bool:
        """Whether this version of the client can be asked."""
        return version("confluent-kafka") == KNOWN_CLIENT

    def fileno(self) -> int:
        """The descriptor to wait for."""
        return self._read

    def clear(self) -> None:
        """To be called before `poll`: what is reported from then on makes the descriptor readable
        again.
        """
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 4096)

    def close(self) -> None:
        """No more events; to be called once, while the producer is there."""
        self._write_to(-1)
        os.close(self._read)
        os.close(self._write)

    def _write_to(self, fd: int) -> None:
        handle = ctypes.c_void_p.from_address(id(self._producer) + _HANDLE_AT).value
        queue = self._library.rd_kafka_queue_get_main(handle)
        self._library.rd_kafka_queue_io_event_enable(queue, fd, _BYTE, len(_BYTE))
        self._library.rd_kafka_queue_destroy(queue)  # our reference only
