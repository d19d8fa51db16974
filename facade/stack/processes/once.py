"""A program that is run to its end, with text for its stdin.

Neighbours: `supervisor` has one run before it is ready. It must not know which program it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from facade.stack.processes.errors import StackError


async def run_once(command: tuple[str, ...], environment: Mapping[str, str], text: bytes, within_s: float) -> str:
    """What it has said. Raises StackError, with its last line, when it fails or takes longer."""
    process = await asyncio.create_subprocess_exec(
        *command, env=dict(environment), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(within_s):
            said, complained = await process.communicate(text)
    except TimeoutError:
        raise StackError(f"{' '.join(command[1:4])} did not end within {within_s:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = complained.decode(errors="replace").strip().splitlines() or [f"it ended with status {process.returncode}"]
        raise StackError(lines[-1][:500])
    return said.decode(errors="replace")
