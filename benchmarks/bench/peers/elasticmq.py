"""ElasticMQ: messages in memory, or in a file by H2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench.fetch import jars_of, load_generator
from benchmarks.bench.sides import Server, Side, answers, process
from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.programs import find_java

# What Java takes by itself on a machine of 24 GiB; said here, so that no machine says otherwise.
HEAP = "-Xmx6g"


def elasticmq(name: str, *, durable: bool = False) -> Side:
    """Returns ElasticMQ with its own settings, but for limits of Amazon SQS that it would keep."""

    @contextlib.contextmanager
    def start(folder: Path) -> Iterator[Server]:
        port = free_port()
        lines = [
            'include classpath("application.conf")',
            f'node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}',
            f'rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1", sqs-limits = relaxed }}',
            "rest-stats { enabled = false }",
        ]
        if durable:
            lines.append(f'messages-storage {{ enabled = true, uri = "jdbc:h2:{folder}/messages" }}')
        (folder / "elasticmq.conf").write_text("\n".join(lines) + "\n")
        jars = jars_of("elasticmq")
        command = [
            find_java(),
            HEAP,
            f"-Dconfig.file={folder}/elasticmq.conf",
            "-cp",
            f"{jars}/*",
            "org.elasticmq.server.Main",
        ]
        endpoint = f"http://127.0.0.1:{port}"
        with process(name, command, folder, lambda: answers(endpoint)) as (pid, trouble):
            yield Server(name, endpoint, (("server", pid),), (str(load_generator()),), trouble=trouble)

    return Side(name, start, lambda cell: cell.kind in ("sqs", "many", "fifo"))
