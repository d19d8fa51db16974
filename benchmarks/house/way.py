"""Which files a receive enters on the default way, from HTTP to Redis and back: `python -m
benchmarks.house.way`.

The plane serves plain queues, so these are files of the library in native/, and the script that it
calls. The library is built without optimisation, a service is run in gdb, and each function of the
library is a breakpoint that is gone when it was met once. What is entered by itself in so long a
time, while nobody asks, is named too: nothing is left out. Needs cargo and gdb; takes two minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, Final

from benchmarks.house.layout import ROOT
from engine.engine import Engine
from engine.settings import Settings
from engine.shapes import Principal
from facade.http.sockets import library
from schemas.records.settings import QueueSettings

NATIVE: Final = ROOT / "native"
LUA: Final = ROOT / "state" / "lua"
# The aim of issue 45 for what a reader opens.
AIM: Final = 25
# How long the service is watched while nobody asks: a receive takes about as long in gdb.
IDLE_S: Final = 3.0
_FUNCTION: Final = re.compile(r'\s*(?:pub(?:\(\w+\))? )?(?:const )?(?:unsafe )?(?:extern "C" )?fn \w+')
# Run by gdb: the places of functions come by a file, what was met goes to another.
_GDB: Final = """
import gdb, json
for line in ("pagination off", "confirm off", "breakpoint pending off", "breakpoint always-inserted on"):
    gdb.execute("set " + line)
for line in ("SIGUSR1 stop print", "SIGUSR2 stop print", "SIGPIPE nostop noprint", "SIGCHLD nostop noprint"):
    gdb.execute("handle " + line + (" nopass" if " stop" in line else " pass"))

def met(until):
    found, places, last = [], {}, {}
    for place in json.load(open(FOLDER + "/places.json")):
        try:
            point = gdb.Breakpoint(place, temporary=True)
            point.silent, places[point.number] = True, place
        except gdb.error:
            pass
    def stopped(event):
        last["signal"] = getattr(event, "stop_signal", None)
        found.extend(places[one.number] for one in getattr(event, "breakpoints", ()) if one.number in places)
    gdb.events.stop.connect(stopped)
    while last.get("signal") != until:
        gdb.execute("continue", to_string=True)
    gdb.events.stop.disconnect(stopped)
    for point in gdb.breakpoints() or ():
        point.delete()
    return found

gdb.execute("run")
found = [met("SIGUSR1"), met("SIGUSR2")]
json.dump(found, open(FOLDER + "/met.json", "w"))
gdb.execute("continue")
"""


def places(root: Path = NATIVE) -> list[str]:
    """Returns file:line of each function of the library."""
    found: list[str] = []
    for path in sorted((root / "src").rglob("*.rs")):
        if "tests" not in path.stem and "tests" not in path.parent.parts:
            lines = path.read_text().splitlines()
            found += [
                f"{path.relative_to(root)}:{number}" for number, line in enumerate(lines, 1) if _FUNCTION.match(line)
            ]
    return found


def script_files(name: str) -> list[str]:
    """Returns the files of a script: itself, what it includes, and its common case."""
    header = [
        line[3:].partition(" ") for line in (LUA / f"{name}.lua").read_text().splitlines() if line.startswith("-- ")
    ]
    words = {word: rest for word, _, rest in header}
    files = [f"{name}.lua", *(f"include/{part}.lua" for part in words.get("INCLUDE", "").split())]
    return [f"state/lua/{file}" for file in [*files, *([words["PLAIN"]] if "PLAIN" in words else [])]]


def files_of(met: list[str]) -> set[str]:
    """Returns the files of places."""
    return {f"native/{place.partition(':')[0]}" for place in met}


def _call(port: int, target: str, body: dict[str, Any]) -> Any:
    headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"AmazonSQS.{target}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


async def serve_one(bootstrap: str, redis_url: str) -> None:
    """Serves a receive of one message, the fifth of its queue; signals tell gdb where it begins."""
    from tests.integration.served import served_by_plane

    vars(library)["BUILT"] = Path(os.environ["LIBRARY"])
    engine = Engine(Settings(kafka_bootstrap=bootstrap, redis_url=redis_url, topic_prefix=f"w{secrets.token_hex(4)}"))
    await engine.start()
    async with served_by_plane(engine) as port:
        await engine.queues.create_queue(Principal("house", admin=True), "q", QueueSettings(partitions=1))
        url = {"QueueUrl": f"http://127.0.0.1:{port}/000000000000/q"}
        for number in range(5):
            await asyncio.to_thread(_call, port, "SendMessage", {**url, "MessageBody": "m"})
            await asyncio.sleep(0.5)
            if number == 4:
                break
            (got,) = (await asyncio.to_thread(_call, port, "ReceiveMessage", url))["Messages"]
            await asyncio.to_thread(_call, port, "DeleteMessage", {**url, "ReceiptHandle": got["ReceiptHandle"]})
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.sleep(IDLE_S)
        os.kill(os.getpid(), signal.SIGUSR1)
        (got,) = (await asyncio.to_thread(_call, port, "ReceiveMessage", url))["Messages"]
        os.kill(os.getpid(), signal.SIGUSR2)
    await engine.stop()


def main() -> int:
    """Prints the files; 1 = they are more than the aim."""
    from tests.services import running_services

    if missing := [name for name in ("cargo", "gdb") if shutil.which(name) is None]:
        sys.exit(f"not found: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="leaseway-way-") as folder, running_services(Path(folder)) as services:
        target = NATIVE / "target" / "way"
        subprocess.run(
            ["cargo", "build", "--quiet", "--locked", "--manifest-path", NATIVE / "Cargo.toml", "--target-dir", target],
            check=True,
        )
        (Path(folder) / "places.json").write_text(json.dumps(places()))
        (Path(folder) / "way.gdb.py").write_text(f"FOLDER = {folder!r}\n{_GDB}")
        command = [
            "gdb",
            "-batch",
            "-x",
            f"{folder}/way.gdb.py",
            "--args",
            sys.executable,
            "-m",
            "benchmarks.house.way",
        ]
        environment = {**os.environ, "LIBRARY": str(target / "debug" / library.NAME)}
        subprocess.run(
            [*command, services.bootstrap, services.redis_url],
            check=True,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        idle, receive = map(files_of, json.loads((Path(folder) / "met.json").read_text()))
    for file in sorted(receive):
        print(file, "(entered while nobody asks, too)" if file in idle else "")
    scripts = script_files("receive")
    print(*scripts, sep="\n")
    print(
        f"{len(receive) + len(scripts)} files of {AIM}: {len(receive)} of the library ({len(receive - idle)} "
        "for the receive alone)"
    )
    return int(len(receive) + len(scripts) > AIM)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(serve_one(sys.argv[1], sys.argv[2]))
    else:
        sys.exit(main())
