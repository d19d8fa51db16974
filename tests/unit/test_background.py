"""No task loses its exception: what the owner of tasks tells, and that no part makes tasks of its
own.
"""

from __future__ import annotations

import ast
import asyncio
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import pytest

from runtime import background
from runtime.background import Background

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "facade", "runtime", "state")
# What starts something whose exception only a caller that asks for it hears of. `submit`: of a pool
# of threads.
MAKERS = {"create_task", "ensure_future", "submit"}
OWNER = Path("runtime/background.py")


def calls(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Each call that makes a task, with the innermost function that it stands in."""

    def walk(node: ast.AST, function: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            inner = child if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            name = getattr(child.func, "attr", getattr(child.func, "id", "")) if isinstance(child, ast.Call) else ""
            if name in MAKERS:
                assert isinstance(child, ast.Call)
                yield function, child
            yield from walk(child, inner)

    return walk(tree, tree)


def gathered(function: ast.AST, call: ast.Call) -> bool:
    """Whether the function puts the task under one name, and awaits that by itself or within
    asyncio.gather.
    """
    names = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and any(part is call for part in ast.walk(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if not isinstance(node, ast.Await):
            continue
        waited = node.value
        asked: list[ast.expr] = [waited]
        if isinstance(waited, ast.Call) and getattr(waited.func, "attr", "") == "gather":
            asked = [arg.value if isinstance(arg, ast.Starred) else arg for arg in waited.args]
        if any(isinstance(arg, ast.Name) and arg.id in names for arg in asked):
            return True
    return False


def strays(file: Path) -> list[str]:
    tree = ast.parse(file.read_text())
    return [f"{file.relative_to(ROOT)}:{call.lineno}" for function, call in calls(tree) if not gathered(function, call)]


def test_no_part_makes_tasks_of_its_own() -> None:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")) if file != ROOT / OWNER]
    assert len(files) > 100
    found = [stray for file in files for stray in strays(file)]
    assert found == [], "not started by a Background, nor awaited where it is made"


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("async def f():\n    asyncio.create_task(g())", False),
        ("async def f():\n    t = loop.create_task(g())\n    t.cancel()", False),
        ("async def f():\n    t = asyncio.ensure_future(g())\n    await asyncio.wait([t])", False),
        ("def f(self):\n    self.threads.submit(g)", False),
        ("async def f():\n    t = asyncio.create_task(g())\n    await t", True),
        ("async def f():\n    ts = [asyncio.create_task(g()) for _ in x]\n    await asyncio.gather(*ts)", True),
    ],
)
def test_the_walk_sees_what_is_lost(text: str, fine: bool) -> None:
    found = list(calls(ast.parse(text)))
    assert len(found) == 1
    assert gathered(*found[0]) is fine


async def test_what_a_task_raises_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    tasks, before = Background(), Background.failures

    async def fails() -> None:
        raise ValueError("broken")

    tasks.start(fails(), "mend")
    await tasks.finished()
    assert Background.failures == before + 1
    (line,) = [record for record in caplog.records if "action=mend" in record.getMessage()]
    assert "broken" in line.getMessage() and line.levelno == logging.ERROR and line.exc_info is not None


async def test_what_callers_await_is_theirs_to_tell(caplog: pytest.LogCaptureFixture) -> None:
    tasks, before = Background(), Background.failures

    async def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await tasks.start(fails(), "mend", awaited=True)
    assert Background.failures == before
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_a_job_that_is_to_go_on_does_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.01)
    tasks, before, runs = Background(), Background.failures, 0
    third = asyncio.Event()

    async def job() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise ValueError("broken")
        third.set()
        await asyncio.Event().wait()

    tasks.keep(job, "follow")
    await asyncio.wait_for(third.wait(), 5)
    assert Background.failures == before + 2
    await tasks.stop()


async def test_a_job_that_goes_on_is_no_part_of_the_request_that_began_it() -> None:
    request: ContextVar[str] = ContextVar("request", default="none")
    tasks, ran = Background(), asyncio.Event()
    seen: list[str] = []

    async def job() -> None:
        seen.append(request.get())
        ran.set()

    request.set("the first")
    tasks.keep(job, "follow")
    await asyncio.wait_for(ran.wait(), 5)
    await tasks.start(job(), "beside")
    assert seen == ["none", "the first"]
    await tasks.stop()


async def test_a_task_is_held_until_it_has_ended() -> None:
    tasks, done = Background(), asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.set()

    tasks.start(work(), "work")
    await tasks.finished()
    assert done.is_set()
