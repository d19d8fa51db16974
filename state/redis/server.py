"""What a Redis server says of itself: which process it is, what it was, and whether it evicts."""

from __future__ import annotations

from dataclasses import dataclass

_NO_ID = "0" * 40


@dataclass(frozen=True, slots=True)
class Server:
    """One look at INFO. `promotion` names the last time at which this process stopped being a
    replica, "" = it never was one: what it had before may be gone. `single`: nothing says that
    another server has, or lately had, a copy of what this one has.
    """

    run_id: str
    promotion: str = ""
    evicted: int = 0
    policy: str = "noeviction"
    is_replica: bool = False
    single: bool = True

    @property
    def evicts(self) -> bool:
        """Whether keys may vanish when the memory is full."""
        return self.policy != "noeviction"

    @property
    def life(self) -> str:
        """A name for what this process has: another one when it may have lost some of that."""
        return f"{self.run_id}/{self.promotion}/{self.evicted}"


def read_server(info: bytes) -> Server:
    """Reads a reply to INFO."""
    facts = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
    followed = facts.get("master_replid2", _NO_ID)
    promotion = "" if followed == _NO_ID else f"{followed[:16]}@{facts.get('second_repl_offset', '')}"
    # A master keeps a backlog for an hour after its last replica has left.
    copied = facts.get("connected_slaves", "0") != "0" or facts.get("repl_backlog_active", "0") != "0"
    return Server(
        run_id=facts["run_id"],
        promotion=promotion,
        evicted=int(facts.get("evicted_keys", "0")),
        policy=facts.get("maxmemory_policy", "noeviction"),
        is_replica=facts.get("role", "master") != "master",
        single=not copied and not promotion and facts.get("redis_mode", "standalone") == "standalone",
    )
