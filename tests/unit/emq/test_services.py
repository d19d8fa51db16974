"""The tables of methods against the names that the IDL's rule gives, and the exceptions from it."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.Thrift import TType

from facade.dialects.emq.wire.kinds import Kind
from facade.dialects.emq.wire.services import (
    MESSAGE_SERVICE,
    QUEUE_SERVICE,
    SERVICES,
    STATISTICS_SERVICE,
    Method,
    Service,
)

NAMES = {
    "QueueService": "createQueue deleteQueue purgeQueue setQueueAttribute setQueueQuota getQueueInfo listQueue "
    "setQueueRedrivePolicy"
    " removeQueueRedrivePolicy setPermission revokePermission queryPermission queryPermissionForId "
    "listPermissions createTag deleteTag"
    " getTagInfo listTag queryMetric queryPrivilegedQueue verifyEMQAdmin verifyEMQAdminRole copyQueue getQueueMeta"
    " listDeadLetterSourceQueues",
    "MessageService": "sendMessage sendMessageBatch receiveMessage changeMessageVisibilitySeconds "
    "changeMessageVisibilitySecondsBatch"
    " deleteMessage deleteMessageBatch deadMessage deadMessageBatch peekMessage deletePeekMessage "
    "deletePeekMessageBatch",
    "StatisticsService": "setUserQuota getUserQuota getUserUsedQuota setUserInfo getUserInfo "
    "addQueueAlertPolicy deleteQueueAlertPolicy"
    " listQueueAlertPolicies addTagAlertPolicy deleteTagAlertPolicy listTagAlertPolicies setQueueDailyStatisticsState"
    " getQueueDailyStatisticsState",
}
VOID = {
    *(
        "deleteQueue",
        "purgeQueue",
        "removeQueueRedrivePolicy",
        "setPermission",
        "revokePermission",
        "deleteTag",
        "copyQueue",
    ),
    *("changeMessageVisibilitySeconds", "deleteMessage", "deadMessage", "deletePeekMessage"),
    *(
        "setUserQuota",
        "setUserInfo",
        "addQueueAlertPolicy",
        "deleteQueueAlertPolicy",
        "addTagAlertPolicy",
        "deleteTagAlertPolicy",
    ),
    *("setQueueDailyStatisticsState", "validClientVersion"),
}
STEM = {
    "setQueueAttribute": "SetQueueAttributes",
    "changeMessageVisibilitySeconds": "ChangeMessageVisibility",
    "changeMessageVisibilitySecondsBatch": "ChangeMessageVisibilityBatch",
}
TAKES = {"getServiceVersion": None, "validClientVersion": "Version", "verifyEMQAdmin": None, "getQueueMeta": "string"}
ANSWERS = {
    "getServiceVersion": "Version",
    "queryMetric": "TimeSeriesData",
    "getUserUsedQuota": "GetUserQuotaResponse",
    "receiveMessage": "list of ReceiveMessageResponse",
    "peekMessage": "list of PeekMessageResponse",
}
METHODS = [(service, method) for service in SERVICES.values() for method in service.methods.values()]


def name(kind: Kind) -> str:
    if kind.shape is not None:
        return kind.shape.name
    if kind.item is not None:
        return f"list of {name(kind.item)}"
    assert (kind.code, kind.is_bytes) == (TType.STRING, False)
    return "string"


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda service: service.name)
def test_a_service_has_its_methods_and_the_two_of_all(service: Service) -> None:
    assert set(service.methods) == {*NAMES[service.name].split(), "getServiceVersion", "validClientVersion"}
    assert all(key == method.name for key, method in service.methods.items())


@pytest.mark.parametrize(
    ("service", "method"), METHODS, ids=[f"{service.name}.{method.name}" for service, method in METHODS]
)
def test_a_method_takes_and_answers_what_its_name_says(service: Service, method: Method) -> None:
    stem = STEM.get(method.name, method.name[0].upper() + method.name[1:])
    takes = TAKES.get(method.name, f"{stem}Request")
    answers = None if method.name in VOID else ANSWERS.get(method.name, f"{stem}Response")
    call: dict[int, Any] = {field.number: name(field.kind) for field in method.call.fields}
    answer = {field.number: name(field.kind) for field in method.answer.fields}

    assert call == ({} if takes is None else {1: takes})
    assert all(field.is_required for field in method.call.fields)
    assert answer == ({} if answers is None else {0: answers}) | {1: "GalaxyEmqServiceException"}
    assert not any(field.is_required for field in method.answer.fields)
    assert method.is_void is (answers is None)


def test_services_are_found_by_their_paths() -> None:
    assert SERVICES == {
        "/v1/api/queue": QUEUE_SERVICE,
        "/v1/api/message": MESSAGE_SERVICE,
        "/v1/api/statistics": STATISTICS_SERVICE,
    }
