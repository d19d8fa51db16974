"""The commands of `leaseway` that run on this machine: a table of them.

What a subcommand does is imported when it runs, so that its help needs neither Kafka's client nor a
web framework. They keep argparse: options of Spark jobs are shared with `python -m spark`, which
runs where click is not installed, and a worker starts without click.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.settings import BadSetting
from facade.config import Settings
from facade.programs.cli import spark_options
from facade.programs.cli.words import LOCAL
from facade.programs.stack.processes.errors import StackError

EXIT_REFUSED = 2
MOST_WORKERS = 64


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: `arguments` adds its options, `run` gives the exit status. `about` None hides
    it from the help.
    """

    name: str
    about: str | None
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit status: 0 done, 2 refused (one line on stderr says
    why).
    """
    given = _parser().parse_args(arguments)
    command: Command = given.command
    try:
        return command.run(given)
    except (StackError, BadSetting) as error:
        print(f"leaseway {command.name}: {error}", file=sys.stderr)
        return EXIT_REFUSED


def say(text: str) -> None:
    """A line of the supervisor; lost when nobody reads any more, or when it can't be written now (a
    full disk).
    """
    try:
        print(f"leaseway: {text}", flush=True)
    except OSError as error:
        # A line without a reader (`leaseway up | head`) must not keep the stack from being watched
        # or stopped. Python would flush it again with the next line and at exit, so it goes
        # nowhere; later lines may have a place again.
        kept = os.dup(sys.stdout.fileno())
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
            sys.stdout.flush()
        if not isinstance(error, BrokenPipeError):
            os.dup2(kept, sys.stdout.fileno())
        os.close(kept)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="leaseway", description="A queue service over Kafka.")
    shown = ",".join(command.name for command in COMMANDS if command.about)
    subparsers = parser.add_subparsers(required=True, metavar=f"{{{shown}}}")
    for command in COMMANDS:
        if command.about:
            subparser = subparsers.add_parser(command.name, help=command.about, description=command.about)
        else:
            subparser = subparsers.add_parser(command.name)
        subparser.set_defaults(command=command)
        command.arguments(subparser)
    return parser


def _worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"must be 1 to {MOST_WORKERS}, given {text!r}")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"must be 0 (a free one) to 65535, given {text!r}")
    return int(text)


def _listen_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="port to listen on, 0 = a free one (default 9400)")
    parser.add_argument(
        "--rocketmq-port", type=_port, help="port for RocketMQ 5 clients (gRPC), 0 = a free one (default: none)"
    )
    parser.add_argument("--workers", type=_worker_count, default=1, help="facade worker processes (default 1)")
    parser.add_argument("--auth", choices=("open", "required"), help="open (loopback only, the default) or required")


def _listen_settings(given: argparse.Namespace) -> dict[str, Any]:
    from facade.programs.stack.processes.ports import free_port

    port = free_port() if given.port == 0 else given.port
    rocketmq = free_port(port or 0) if given.rocketmq_port == 0 else given.rocketmq_port
    return {"host": given.host, "port": port, "rocketmq_port": rocketmq, "auth": given.auth}


def _up_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, default=Path(".data"), help="folder of all data, made when missing (default .data)"
    )
    parser.add_argument(
        "--durable",
        choices=("page-cache", "fsync"),
        help="when a send is answered: page-cache (the default: survives kill -9 of Kafka, not a power cut) or fsync",
    )
    console = parser.add_mutually_exclusive_group()
    console.add_argument(
        "--console-port", type=_port, default=0, help="port of the console (default: one beside that of the service)"
    )
    console.add_argument("--no-console", dest="console_port", action="store_const", const=None, help="start no console")
    aside = parser.add_mutually_exclusive_group()
    aside.add_argument(
        "--rebuild-redis",
        dest="aside",
        action="store_const",
        const=("redis",),
        default=(),
        help="set Redis' data aside and rebuild the state from Kafka: loses acks and leases of the last second "
        "before a crash",
    )
    aside.add_argument(
        "--start-empty",
        dest="aside",
        action="store_const",
        const=("kafka", "redis"),
        help="set the data of Kafka and Redis aside and start without a queue",
    )
    _listen_arguments(parser)


def _up(given: argparse.Namespace) -> int:
    from facade.programs.stack.supervisor import Order, up

    flush = {None: None, "page-cache": 0, "fsync": 1}[given.durable]
    settings = {**_listen_settings(given), "flush_messages": flush}
    up(Order(given.data, given.workers, settings, given.aside, given.console_port), say)
    return 0


def _serve(given: argparse.Namespace) -> int:
    from facade.programs.stack.serving import serve

    serve(Settings.read(**_listen_settings(given)), given.workers, say)
    return 0


def _console_arguments(parser: argparse.ArgumentParser) -> None:
    from facade.programs.console import options

    options.add_arguments(parser)


def _console(given: argparse.Namespace) -> int:
    from facade.programs.console import options

    return options.run(given, say)


def _worker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ready-file", type=Path)
    _stdin_argument(parser)


def _stdin_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings-on-stdin", action="store_true")


def _settings(given: argparse.Namespace) -> Settings:
    from facade.programs.stack.workers import read_settings

    return read_settings(sys.stdin.buffer.read()) if given.settings_on_stdin else Settings.read()


def _worker(given: argparse.Namespace) -> int:
    from facade.programs.stack.worker import run

    return run(_settings(given), given.ready_file)


def _prepare_arguments(parser: argparse.ArgumentParser) -> None:
    _stdin_argument(parser)


def _prepare(given: argparse.Namespace) -> int:
    from facade.programs.cli import prepare

    prepare.run(_settings(given))
    return 0


def _config_arguments(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print docs/reference/config.md instead")
    form.add_argument("--example", action="store_true", help="print .env.example instead")


def _config(given: argparse.Namespace) -> int:
    from facade.programs.cli import config

    if given.markdown:
        print(config.markdown(), end="")
    elif given.example:
        print(config.example(), end="")
    else:
        settings = Settings.read()
        print(config.current(settings, os.environ), end="")
        print(config.native(settings))
    return 0


def _jars_arguments(parser: argparse.ArgumentParser) -> None:
    from facade.programs.stack.processes.jars import SETS

    about = "; ".join(f"{name}: {what}" for name, what in SETS.items())
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{about} (default: broker)")


def _jars(given: argparse.Namespace) -> int:
    from facade.programs.stack import class_archive
    from facade.programs.stack.processes.jars import SETS, fetch
    from facade.programs.stack.processes.spark_submit import make_archive

    if unknown := [name for name in given.sets if name not in SETS]:
        raise StackError(f"no set of jars is called {unknown[0]!r}; there are {' and '.join(SETS)}")
    sets = given.sets or ["broker"]
    say(f"the jars are in {fetch(say, sets)}")
    if "broker" in sets:
        class_archive.make(say)
    if "spark" in sets:
        make_archive(say)
    return 0


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    from facade.programs.demo.run import add_arguments

    add_arguments(parser)


def _demo(given: argparse.Namespace) -> int:
    from facade.programs.demo.run import run

    return run(given)


def _spark_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "job", nargs=argparse.REMAINDER, metavar="JOB", help="a PySpark file and its arguments, or `shell`"
    )


def _spark(given: argparse.Namespace) -> int:
    from facade.programs.stack.processes.spark_submit import run

    if not given.job:
        raise StackError("say which PySpark file to run, or `shell`")
    return run(given.job)


def _redrive(given: argparse.Namespace) -> int:
    return spark_options.redrive(given, say)


def _zip(given: argparse.Namespace) -> int:
    return spark_options.write_zip(given, say)


def _verify_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--queue", action="append", default=[], metavar="NAME", help="a queue to verify, may be repeated (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    spark_options.data_argument(parser)


def _verify(given: argparse.Namespace) -> int:
    from facade.programs.cli import maintenance

    status, lines = maintenance.verify(maintenance.settings_of(given.data), given.queue, as_json=given.json)
    print("\n".join(lines))
    return status


def _rebuild_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--queue", action="append", default=[], metavar="NAME", help="a queue to rebuild, may be repeated"
    )
    which.add_argument("--all", action="store_true", help="all queues")
    spark_options.data_argument(parser)


def _rebuild(given: argparse.Namespace) -> int:
    from facade.programs.cli import maintenance

    for line in maintenance.rebuild(maintenance.settings_of(given.data), given.queue):
        print(line)
    return 0


def _seal_arguments(parser: argparse.ArgumentParser) -> None:
    adopt = parser.add_mutually_exclusive_group()
    adopt.add_argument(
        "--adopt",
        nargs="*",
        metavar="NAME",
        help="seal again what LEASEWAY_SECRET_OLD has sealed, and seal the records of these names as the list has "
        "them; without names a terminal is asked, and nothing else is adopted",
    )
    adopt.add_argument(
        "--adopt-listed", type=Path, metavar="FILE", help="the same for the names in a list that this command printed"
    )
    parser.add_argument(
        "--copied",
        action="store_true",
        help="the topic is a copy from another cluster: offer what the secret sealed there",
    )
    parser.add_argument(
        "--drop", action="store_true", help="delete what does not count, where nothing else of its key does"
    )
    spark_options.data_argument(parser)


def _seal(given: argparse.Namespace) -> int:
    from facade.programs.cli import maintenance, sealing

    names = given.adopt or [] if given.adopt_listed is None else sealing.names_in(given.adopt_listed)
    adopts = given.adopt is not None or given.adopt_listed is not None
    asks = given.adopt == [] and sys.stdin.isatty()
    wish = sealing.Wish(adopts, names, given.drop, given.copied, sealing.terminal if asks else None)
    status, lines = sealing.seal(maintenance.settings_of(given.data), wish)
    print("\n".join(lines))
    return status


def _command(
    name: str, arguments: Callable[[argparse.ArgumentParser], None], run: Callable[[argparse.Namespace], int]
) -> Command:
    return Command(name, LOCAL[name], arguments, run)


COMMANDS = (
    _command("up", _up_arguments, _up),
    _command("serve", _listen_arguments, _serve),
    _command("console", _console_arguments, _console),
    _command("demo", _demo_arguments, _demo),
    _command("spark", _spark_arguments, _spark),
    _command("sql", spark_options.sql_arguments, spark_options.job),
    _command("report", spark_options.report_arguments, spark_options.job),
    _command("live", spark_options.live_arguments, spark_options.job),
    _command("lake", spark_options.lake_arguments, spark_options.job),
    _command("spark-server", spark_options.server_arguments, spark_options.server),
    _command("redrive", spark_options.redrive_arguments, _redrive),
    _command("spark-zip", spark_options.zip_arguments, _zip),
    _command("verify", _verify_arguments, _verify),
    _command("rebuild", _rebuild_arguments, _rebuild),
    _command("seal", _seal_arguments, _seal),
    _command("config", _config_arguments, _config),
    _command("jars", _jars_arguments, _jars),
    _command("worker", _worker_arguments, _worker),
    _command("prepare", _prepare_arguments, _prepare),
)
