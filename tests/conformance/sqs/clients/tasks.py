"""A Celery application over SQS, as its users write one. It runs in a process with Celery's own
packages, not with ours.

`python tasks.py COUNT` sends COUNT tasks; `celery -A tasks worker` does them. Each run of a task is
a line in CELERY_LOG: number, try, seconds it was early (below 0: after its time).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery

app = Celery("tasks", broker=os.environ["CELERY_BROKER"])
app.conf.update(
    broker_transport_options={
        "is_secure": False,
        "region": "eu-west-1",
        "queue_name_prefix": os.environ["CELERY_PREFIX"],
        "polling_interval": 0.1,
        "wait_time_seconds": 5,
        "visibility_timeout": 60,
    },
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=10,
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
)


@app.task(bind=True, name="work", max_retries=3)  # type: ignore[untyped-decorator]
def work(self: Any, number: int, due: float) -> None:
    with Path(os.environ["CELERY_LOG"]).open("a") as log:
        log.write(f"{number} {self.request.retries} {due - time.time():.3f}\n")
    if number % 10 == 0 and self.request.retries < 2:
        raise self.retry(countdown=1, args=(number, time.time() + 1))


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        delay = 3 if number % 7 == 0 else 0
        work.apply_async((number, time.time() + delay), countdown=delay or None)
