"""Alert policies, daily statistics and metrics, by EMQ's own client and in all three protocols."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Galaxy, Refused
from tests.conformance.emq.thrift_client import PROTOCOLS, ThriftClient
from tests.services import Up

INVALID_ATTRIBUTE, QUEUE_NOT_EXIST = 2, 6


@pytest.fixture(params=list(PROTOCOLS))
def client(up: Up | Running, request: pytest.FixtureRequest) -> Iterator[ThriftClient]:
    made = ThriftClient(up.endpoint, request.param)
    yield made
    made.close()


def policy(type: int, measurement: int, threshold: float) -> dict[str, float]:
    return {"type": type, "measurement": measurement, "threshold": threshold}


def test_policies_of_a_queue_and_of_a_tag_are_apart(client: ThriftClient, name: str) -> None:
    queue = client.call("createQueue", queueName=name)["queueName"]
    exists = {"type": "empty"}
    client.call("createTag", queueName=queue, tagName="t", attributeName="a", attributeValue=exists)
    of_queue = [policy(0, 2, 100.0), policy(1, 1, 0.5), policy(8, 2, 1e6)]
    for one in (*of_queue, of_queue[0]):
        client.call("addQueueAlertPolicy", queueName=queue, alertPolicy=one)
    client.call("addTagAlertPolicy", queueName=queue, tagName="t", alertPolicy=policy(7, 0, 10.0))
    client.call("addTagAlertPolicy", queueName=queue, alertPolicy=policy(6, 0, 20.0))
    assert client.call("listQueueAlertPolicies", queueName=queue) == {"queueName": queue, "alertPolicies": of_queue}
    assert client.call("listTagAlertPolicies", queueName=queue, tagName="t") == {
        "queueName": queue, "tagName": "t", "alertPolicies": [policy(7, 0, 10.0)],
    }  # fmt: skip
    assert client.call("listTagAlertPolicies", queueName=queue)["alertPolicies"] == [policy(6, 0, 20.0)]
    client.call("deleteQueueAlertPolicy", queueName=queue, alertPolicy=of_queue[1])
    client.call("deleteTagAlertPolicy", queueName=queue, alertPolicy=policy(6, 0, 20.0))
    assert client.call("listQueueAlertPolicies", queueName=queue)["alertPolicies"] == [of_queue[0], of_queue[2]]
    assert client.call("listTagAlertPolicies", queueName=queue)["alertPolicies"] == []


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("addQueueAlertPolicy", {"alertPolicy": policy(9, 0, 1.0)}),
        ("addQueueAlertPolicy", {"alertPolicy": policy(0, 3, 1.0)}),
        ("addQueueAlertPolicy", {"alertPolicy": policy(8, 0, 1.0)}),
        ("addQueueAlertPolicy", {"alertPolicy": policy(0, 0, -1.0)}),
        ("addQueueAlertPolicy", {"alertPolicy": policy(0, 0, float("nan"))}),
        ("addQueueAlertPolicy", {"alertPolicy": {"type": 0, "measurement": 0}}),
        ("deleteQueueAlertPolicy", {"alertPolicy": policy(0, 0, 1.0)}),
        ("addTagAlertPolicy", {"alertPolicy": policy(0, 2, 1.0)}),
        ("addTagAlertPolicy", {"tagName": "none", "alertPolicy": policy(1, 2, 1.0)}),
        ("queryMetric", {"metrics": "nonsense"}),
        ("queryMetric", {}),
        ("queryMetric", {"metrics": "send_request.count", "tags": {"type": ""}}),
        ("queryMetric", {"metrics": "send_request.count", "aggregator": "zimsum"}),
        ("queryMetric", {"metrics": "send_request.count", "downsampleAggregator": "p99"}),
        ("queryMetric", {"metrics": "send_request.count", "downsampleInterval": 5, "downsampleTimeUnit": "s"}),
        ("queryMetric", {"metrics": "send_request.count", "downsampleInterval": 5, "downsampleTimeUnit": "week"}),
        ("queryMetric", {"metrics": "send_request.latency", "calRate": True}),
        ("queryMetric", {"metrics": "send_request.count", "tagName": "none"}),
        ("queryMetric", {"metrics": "send_request.count", "startTime": 2, "endTime": 1}),
    ],
)  # fmt: skip
def test_what_cannot_be_watched_or_shown_is_a_bad_value(
    up: Up | Running, name: str, method: str, request_: dict[str, object]
) -> None:
    client = ThriftClient(up.endpoint)
    queue = client.call("createQueue", queueName=name)["queueName"]
    with pytest.raises(Refused) as refused:
        client.call(method, queueName=queue, **request_)
    assert refused.value.code == INVALID_ATTRIBUTE
    assert client.call("listQueueAlertPolicies", queueName=queue)["alertPolicies"] == []
    client.close()


def test_daily_statistics_are_off_until_they_are_switched_on(client: ThriftClient, name: str) -> None:
    queue = client.call("createQueue", queueName=name)["queueName"]
    for enabled in (True, False):
        before = client.call("getQueueDailyStatisticsState", queueName=queue)
        assert before == {"queueName": queue, "enabled": not enabled}
        client.call("setQueueDailyStatisticsState", queueName=queue, enabled=enabled)
    with pytest.raises(Refused) as refused:
        client.call("getQueueDailyStatisticsState", queueName="nobody/nothing")
    assert refused.value.code == QUEUE_NOT_EXIST


def test_a_metric_is_a_series_of_doubles(client: ThriftClient, name: str) -> None:
    queue = client.call("createQueue", queueName=name)["queueName"]
    client.call("sendMessage", queueName=queue, messageBody="x")
    found = client.call(
        "queryMetric", queueName=queue, metrics="send_request.count", downsampleInterval=1, downsampleTimeUnit="h",
        downsampleAggregator="sum", aggregator="sum", calRate=False,
    )  # fmt: skip
    assert found["metric"] == "send_request.count" and found["tags"] == {"queue": queue}
    assert sum(found["data"].values()) in (0, 1), "the minute may not be over"


def test_the_sdk_and_the_native_api_speak_of_the_same_policies(galaxy: Galaxy, up: Up | Running, queue: str) -> None:
    galaxy.call("addQueueAlertPolicy", queueName=queue, alertPolicy=policy(5, 1, 250.0))
    short = queue.partition("/")[2]
    with httpx.Client(base_url=up.endpoint) as native:
        (alert,) = native.get(f"/v1/queues/{short}/alerts").json()["alerts"]
        assert (alert["subject"], alert["measurement"], alert["threshold"], alert["tag"], alert["firing"]) == (
            "batch_send_request", "latency_p999", 250.0, None, False,
        )  # fmt: skip
        assert native.get(f"/v1/queues/{short}/alerts/history").json() == {"events": []}
        body = {"subject": "delete_request", "measurement": "count", "threshold": 7, "tag": "default"}
        made = native.post(f"/v1/queues/{short}/alerts", json=body)
        assert made.status_code == 201
        assert native.delete(f"/v1/queues/{short}/alerts/{alert['id']}").status_code == 204
        gone = native.delete(f"/v1/queues/{short}/alerts/{alert['id']}")
        assert (gone.status_code, gone.json()["code"]) == (404, "alert_not_found")
    assert galaxy.call("listQueueAlertPolicies", queueName=queue)["alertPolicies"] == []
    # The SDK of 2016 does not know policies of tags.
    newer = ThriftClient(up.endpoint)
    assert newer.call("listTagAlertPolicies", queueName=queue)["alertPolicies"] == [policy(3, 2, 7.0)]
    newer.close()
