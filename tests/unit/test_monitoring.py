"""Rules, dashboard and scaler of deploy/monitoring are what Prometheus, Grafana and KEDA read.
Whether a service has the series that they name is asked in tests/stack/test_monitoring.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.queues.alarms import KINDS
from tests.docs.metrics import MEANINGS
from tests.monitoring import FOLDER, RULES, dashboard, expressions, filled, rules, samples_of, selectors

RECORDED = {rule["record"] for rule in rules("cloudwatch.rules.yml")}
_OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


@pytest.mark.parametrize("place", expressions())
def test_an_expression_is_promql_over_documented_series(place: str) -> None:
    found = list(selectors(expressions()[place]))

    assert found
    for one in found:
        known = MEANINGS.keys() | RECORDED | {"up"}
        assert one.name in known or _OF_HISTOGRAM.sub("", one.name) in known, one.name
        for label, operator, value in one.matchers:
            if label == "kind":
                kinds = set(value.split("|")) if "~" in operator else {value}
                assert kinds <= {*KINDS, "clock_skew", "redis_evicts", "journal_gap", "control_refused"}, kinds


def test_what_can_not_be_found_is_said() -> None:
    samples = samples_of(['a_total{queue="orders",state="ready"} 1\nb 2\n'])

    def missing(expression: str) -> list[str]:
        return [said for one in selectors(expression) if (said := one.missing(samples))]

    assert missing('sum by (queue) (rate(a_total{state=~"ready|stored"}[5m])) > 0 unless on (queue) b') == [
        "b has no label queue"
    ]
    assert missing("max by (instance, queue) (a_total) / b") == []
    assert missing("c") == ["no series c"]
    assert missing('a_total{state="leased"}') == ["no series of a_total fits [('state', '=', 'leased')]"]
    assert missing('a_total{state!="leased",state!~"l.*"}') == []
    assert missing('sum by (tag) (a_total{reason="x"})') == ["a_total has no label reason, tag"]
    with pytest.raises(ValueError, match="unclosed"):
        missing("sum by (queue (a_total)")


@pytest.mark.parametrize("name", RULES)
def test_rules_have_what_prometheus_knows_and_nothing_else(name: str) -> None:
    read = yaml.safe_load((FOLDER / name).read_text())

    assert read.keys() == {"groups"}
    assert len({group["name"] for group in read["groups"]}) == len(read["groups"])
    for group in read["groups"]:
        assert group.keys() <= {"name", "interval", "rules"}
    for rule in rules(name):
        kind = {"alert", "for", "annotations"} if "alert" in rule else {"record"}
        assert rule.keys() <= kind | {"expr", "labels"}
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", rule.get("alert") or rule["record"])
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert all(isinstance(value, str) for value in rule.get("labels", {}).values())


def test_an_alert_says_how_bad_it_is_and_names_labels_that_it_has() -> None:
    found = rules("alerts.rules.yml")
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["labels"]["severity"] in ("warning", "critical")
        grouped = {label for one in selectors(rule["expr"]) for label in one.by}
        named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert named <= grouped | {"instance"}, rule["alert"]


def test_every_alert_stands_in_the_guide() -> None:
    guide = (FOLDER.parents[1] / "docs" / "how-to" / "monitor.md").read_text()
    assert [rule["alert"] for rule in rules("alerts.rules.yml") if f"`{rule['alert']}`" not in guide] == []


def test_the_dashboard_has_its_rows_and_uses_its_variables() -> None:
    board = dashboard()
    panels = board["panels"]
    assert [panel["title"] for panel in panels if panel["type"] == "row"] == [
        "Service",
        "Worst ten queues",
        "One queue: $queue",
        "FIFO and fairness",
        "Rebuilds and moves",
    ]
    assert [one["name"] for one in board["templating"]["list"]] == ["datasource", "queue", "tag"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
            assert "$" not in filled(target["expr"])
            grouped = {label for one in selectors(filled(target["expr"])) for label in one.by}
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= grouped
    for one in board["templating"]["list"][1:]:
        (inner,) = re.findall(r"label_values\((.*), \w+\)", one["query"]["query"])
        assert [*selectors(filled(inner))]


def _places(panels: list[dict[str, Any]]) -> list[set[tuple[int, int]]]:
    return [
        {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        for at in (panel["gridPos"] for panel in panels)
    ]


def test_no_panel_lies_on_another_or_beyond_the_page() -> None:
    places = _places(dashboard()["panels"])
    assert sum(map(len, places)) == len(set[tuple[int, int]]().union(*places))
    assert max(x for place in places for x, _ in place) < 24


def test_the_scrapes_load_the_rules_and_ask_what_there_is() -> None:
    read = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    assert read["rule_files"] == list(RULES)
    assert [one.get("metrics_path", "/metrics") for one in read["scrape_configs"]] == ["/metrics", "/metrics/queues"]
    assert all(one["job_name"].startswith("leaseway") for one in read["scrape_configs"])


def test_the_scaler_names_what_keda_knows() -> None:
    scaled, authentication, secret = yaml.safe_load_all((FOLDER / "scaledobject.yml").read_text())
    (trigger,) = scaled["spec"]["triggers"]
    assert (scaled["kind"], trigger["type"]) == ("ScaledObject", "aws-sqs-queue")
    assert trigger["metadata"].keys() == {
        "queueURL",
        "awsEndpoint",
        "awsRegion",
        "queueLength",
        "activationQueueLength",
        "scaleOnInFlight",
        "scaleOnDelayed",
    }
    assert all(isinstance(value, str) for value in trigger["metadata"].values()), "KEDA takes texts alone"
    assert trigger["metadata"]["queueURL"].startswith(trigger["metadata"]["awsEndpoint"] + "/")
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
    for one in authentication["spec"]["secretTargetRef"]:
        assert one["name"] == secret["metadata"]["name"]
        assert one["key"] in secret["stringData"]


PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is missing (Debian has it in its package prometheus)"
)

# What 90 minutes bring where all is well; and by alert what is else where it has a cause.
CALM = {
    'up{job="leaseway"}': "1x90",
    'leaseway_units_owned{worker="0"}': "1x90",
    'leaseway_units_owned{worker="1"}': "1x90",
    'leaseway_requests_total{status="200"}': "0+1000x90",
    'leaseway_requests_total{status="503"}': "0+1x90",
    'leaseway_journal_lag_seconds{worker="0"}': "0.1x90",
    'leaseway_alarm{kind="clock_skew",queue="w"}': "0x90",
    'leaseway_alarm{kind="redis_evicts",queue=""}': "0x90",
    **{
        f'leaseway_{name}_total{{worker="0"}}': "7x90"
        for name in ("rebuilds", "background_failures", "meter_records_dropped", "audit_records_dropped")
    },
    'leaseway_lost_to_retention_total{worker="0"}': "7x90",
    'leaseway_lost_with_topic_total{worker="0"}': "7x90",
    'leaseway_queue_oldest_message_age_seconds{queue="q"}': "3000x90",
    'leaseway_queue_retention_seconds{queue="q"}': "7200x90",
    'leaseway_queue_dead_total{queue="q",tag="default"}': "7x90",
    'leaseway_queue_messages{queue="q",state="ready"}': "5x90",
    'leaseway_queue_messages{queue="q",state="leased"}': "50x90",
    'leaseway_queue_messages{queue="q.dead",state="ready"}': "5x90",
    'leaseway_queue_in_flight_limit{queue="q"}': "100x90",
    'leaseway_queue_received_total{queue="q",tag="default"}': "0+100x90",
    'leaseway_queue_redelivered_total{queue="q",tag="default"}': "0+10x90",
}
CAUSES = {
    "LeasewayDown": {'up{job="leaseway"}': "0x90"},
    "LeasewayWorkerGone": {'leaseway_units_owned{worker="1"}': "1x20"},
    "LeasewayUnavailable": {'leaseway_requests_total{status="503"}': "0+11x90"},
    "LeasewayJournalLag": {'leaseway_journal_lag_seconds{worker="0"}': "2x90"},
    "LeasewayClockSkew": {'leaseway_alarm{kind="clock_skew",queue="w"}': "3x90"},
    "LeasewayRebuilds": {'leaseway_rebuilds_total{worker="0"}': "0+1x90"},
    "LeasewayDefect": {'leaseway_background_failures_total{worker="0"}': "0+1x90"},
    "LeasewayRecordsDropped": {'leaseway_audit_records_dropped_total{worker="0"}': "0+1x90"},
    "LeasewayAlarm": {'leaseway_alarm{kind="redis_evicts",queue=""}': "1x90"},
    "LeasewayLost": {'leaseway_lost_with_topic_total{worker="0"}': "0+1x90"},
    "LeasewayOldestMessage": {
        'leaseway_queue_oldest_message_age_seconds{queue="q"}': "3700x90",
        'leaseway_queue_retention_seconds{queue="q"}': "72000x90",
    },
    "LeasewayHalfOfRetention": {'leaseway_queue_retention_seconds{queue="q"}': "5000x90"},
    "LeasewayDeadLetters": {'leaseway_queue_dead_total{queue="q",tag="default"}': "0+1x90"},
    "LeasewayNoReceiver": {
        'leaseway_queue_received_total{queue="q",tag="default"}': "7x90",
        'leaseway_queue_redelivered_total{queue="q",tag="default"}': "7x90",
    },
    "LeasewayInFlightNearLimit": {'leaseway_queue_in_flight_limit{queue="q"}': "60x90"},
    "LeasewayRedelivery": {'leaseway_queue_redelivered_total{queue="q",tag="default"}': "0+30x90"},
}


@needs_promtool
def test_promtool_reads_the_rules_and_the_configuration() -> None:
    for about in (
        ["rules", "--lint=all", "--lint-fatal", *(str(FOLDER / name) for name in RULES)],
        ["config", "--syntax-only", str(FOLDER / "prometheus.yml")],
    ):
        ran = subprocess.run([str(PROMTOOL), "check", *about], check=False, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_promtool
def test_each_alert_fires_for_its_cause_alone_and_none_while_all_is_well(tmp_path: Path) -> None:
    def case(name: str, firing: str, causes: dict[str, str]) -> dict[str, Any]:
        series = [{"series": series, "values": values} for series, values in (CALM | causes).items()]
        samples = [{"labels": f'{{alertname="{firing}"}}', "value": 1}] if firing else []
        expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
        asked = {"expr": expression, "eval_time": "80m", "exp_samples": samples}
        return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [asked]}

    shown = {
        "expr": "aws_sqs_approximate_number_of_messages_visible_average",
        "eval_time": "80m",
        "exp_samples": [
            {"labels": _cloudwatch("q"), "value": 5},
            {"labels": _cloudwatch("q.dead"), "value": 5},
        ],
    }
    calm = case("calm", "", {})
    calm["promql_expr_test"].append(shown)
    assert CAUSES.keys() == {rule["alert"] for rule in rules("alerts.rules.yml")}
    tests = [calm, *(case(alert, alert, causes) for alert, causes in CAUSES.items())]
    file = tmp_path / "rules.test.yml"
    files = [str(FOLDER / name) for name in RULES]
    file.write_text(yaml.safe_dump({"rule_files": files, "evaluation_interval": "1m", "tests": tests}))
    command = [str(PROMTOOL), "test", "rules", str(file)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _cloudwatch(queue: str) -> str:
    """The series of a queue under the name that CloudWatch's exporter gives to it."""
    labels = {
        "account_id": "000000000000",
        "dimension_QueueName": queue,
        "name": f"arn:aws:sqs:us-east-1:000000000000:{queue}",
        "queue": queue,
        "region": "us-east-1",
    }
    given = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"aws_sqs_approximate_number_of_messages_visible_average{{{given}}}"
