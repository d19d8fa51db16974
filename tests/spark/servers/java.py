"""A served S3 and a REST catalog of Iceberg, in one JVM that the tests steer: S3Proxy keeps objects
in a folder, and Iceberg's own tests bring the service that answers for a catalog.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]

from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.programs import find_java

KEY, SECRET = "tables", "of-a-test"


@contextlib.contextmanager
def servers(jars: Path) -> Iterator[Any]:
    """The classes of a JVM with these jars, as py4j has them; it ends with the block."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    command = [find_java(), *options, "-cp", f"{jars}/*", "py4j.GatewayServer", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        # Nobody reads what it would say on stdout.
        gateway.jvm.org.slf4j.LoggerFactory.getLogger("ROOT").setLevel(gateway.jvm.ch.qos.logback.classic.Level.OFF)
        yield gateway
        gateway.close()
    finally:
        process.kill()
        process.communicate()


def serve_s3(gateway: Any, folder: Path, bucket: str) -> str:
    """Serves a bucket, whose objects are files below the folder; its address. It wants signatures
    by KEY and SECRET.
    """
    (folder / bucket).mkdir(parents=True)
    address = f"http://127.0.0.1:{free_port()}"
    told = {
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.endpoint": address,
        # Those about sums, which it knows nothing of.
        "s3proxy.ignore-unknown-headers": "true",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem",
        "jclouds.identity": KEY,
        "jclouds.credential": SECRET,
        "jclouds.filesystem.basedir": str(folder),
    }
    file = folder.with_suffix(".properties")
    file.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    words = gateway.new_array(gateway.jvm.java.lang.String, 2)
    words[0], words[1] = "--properties", str(file)
    gateway.jvm.org.gaul.s3proxy.Main.main(words)
    return address


def serve_catalog(gateway: Any, folder: Path) -> str:
    """Serves a catalog over REST, whose tables are in a folder; its address."""
    jvm, jetty = gateway.jvm, gateway.jvm.org.eclipse.jetty
    catalog = jvm.org.apache.iceberg.inmemory.InMemoryCatalog()
    catalog.initialize("served", {"warehouse": folder.as_uri()})
    servlet = jvm.org.apache.iceberg.rest.RESTCatalogServlet(jvm.org.apache.iceberg.rest.RESTCatalogAdapter(catalog))
    port = free_port()
    server = jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", port))
    handler = jetty.servlet.ServletContextHandler()
    handler.addServlet(jetty.servlet.ServletHolder(servlet), "/*")
    server.setHandler(handler)
    server.start()
    return f"http://127.0.0.1:{port}"
