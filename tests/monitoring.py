"""What the files of deploy/monitoring ask Prometheus: each expression, and the series that it
names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import absent

FOLDER: Final = Path(__file__).parents[1] / "deploy" / "monitoring"
RULES: Final = ("alerts.rules.yml", "cloudwatch.rules.yml")
# What Grafana writes for its variables. The queue and the tag are those of the traffic of a test.
VARIABLES: Final = {"$__rate_interval": "5m", "$queue": "orders", "$tag": ".*"}
# Labels that Prometheus adds to what it scrapes, and the series that it makes of a scrape.
ADDED: Final = {"instance", "job"}
UP: Final = "up"
# Labels whose values depend on what has gone wrong.
BY_CHANCE: Final = {"status", "kind", "reason"}

Samples = Mapping[str, list[dict[str, str]]]


@dataclass(frozen=True)
class Selector:
    """A series that an expression names, with its matchers (label, operator, value) and the labels
    that what is around it groups or matches by.
    """

    name: str
    matchers: tuple[tuple[str, str, str], ...]
    by: frozenset[str]

    def missing(self, samples: Samples) -> str:
        """What keeps it from finding anything in a scrape; empty = nothing does."""
        found = samples.get(self.name)
        if not found:
            return f"no series {self.name}"
        labels = set[str]().union(*found) | ADDED
        if unknown := ({name for name, _, _ in self.matchers} | self.by) - labels:
            return f"{self.name} has no label {', '.join(sorted(unknown))}"
        sure = [one for one in self.matchers if one[0] not in BY_CHANCE | ADDED]
        return "" if any(_fits(sure, one) for one in found) else f"no series of {self.name} fits {sure}"


def rules(name: str) -> list[dict[str, Any]]:
    """The rules of a file, of all groups."""
    return [rule for group in yaml.safe_load((FOLDER / name).read_text())["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """The dashboard of Grafana."""
    found: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text())
    return found


def expressions() -> dict[str, str]:
    """Each expression, by where it stands."""
    found = {}
    for file in RULES:
        for rule in rules(file):
            found[f"{file} {rule.get('alert') or rule['record']}"] = rule["expr"]
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            found[f"grafana.json {panel['title']} {target['refId']}"] = filled(target["expr"])
    return found


def filled(expression: str) -> str:
    """An expression as Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def selectors(expression: str) -> Iterator[Selector]:
    """Every series that an expression names. Raises ValueError: it is no PromQL."""
    try:
        import promql_parser
    except ImportError:
        absent("promql-parser: `make setup` installs it")
    yield from _selectors(promql_parser.parse(expression), frozenset())


def _selectors(node: Any, by: frozenset[str]) -> Iterator[Selector]:
    match type(node).__name__:
        case "VectorSelector":
            matchers = tuple((one.name, _OPERATORS[str(one.op)], one.value) for one in node.matchers.matchers)
            yield Selector(node.name, matchers, by)
        case "MatrixSelector":
            yield from _selectors(node.vector_selector, by)
        case "AggregateExpr":
            # What groups further out sees the labels that are left here.
            yield from _selectors(node.expr, by | frozenset(node.modifier.labels if node.modifier else ()))
        case "BinaryExpr":
            matching = node.modifier.matching if node.modifier else None
            own = by | frozenset(matching.labels if matching else ())
            yield from _selectors(node.lhs, own)
            yield from _selectors(node.rhs, own)
        case "Call":
            for argument in node.args:
                yield from _selectors(argument, by)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            yield from _selectors(node.expr, by)
        case "NumberLiteral" | "StringLiteral":
            return
        case kind:
            raise ValueError(f"{kind} is not known here")


_OPERATORS: Final = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}


def samples_of(texts: Iterable[str]) -> dict[str, list[dict[str, str]]]:
    """The labels of each series of some scrapes, by its name."""
    found: dict[str, list[dict[str, str]]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample.labels)
    return found


def _fits(matchers: Iterable[tuple[str, str, str]], labels: Mapping[str, str]) -> bool:
    for name, operator, value in matchers:
        given = labels.get(name, "")
        same = re.fullmatch(value, given) is not None if "~" in operator else value == given
        if same == operator.startswith("!"):
            return False
    return True
