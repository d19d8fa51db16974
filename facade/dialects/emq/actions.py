"""Which function does which method of which service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from facade.dialects.emq.messages import handles, messages, peeks
from facade.dialects.emq.queues import alerts, copies, permissions, queues, tags, users
from facade.dialects.emq.queues.call import Action, Call, EmqError
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs.shared import Version

if TYPE_CHECKING:
    from engine.engine import Engine

_VERSION: Final = Version()


async def get_service_version(engine: Engine, call: Call) -> Version:
    """The version of the API."""
    return _VERSION


async def valid_client_version(engine: Engine, call: Call) -> None:
    """Whether a client may use this API: those of the same major version. Raises EmqError."""
    given: Version = call.body
    if given.major != _VERSION.major:
        raise EmqError(
            ErrorCode.INVALID_ACTION, f"this service speaks version {_VERSION.major}, the client {given.major}"
        )


ACTIONS: Final[dict[str, Action]] = {
    "getServiceVersion": Action(get_service_version),
    "validClientVersion": Action(valid_client_version),
    "createQueue": Action(queues.create_queue),
    "deleteQueue": Action(queues.delete_queue),
    "purgeQueue": Action(queues.purge_queue),
    "setQueueAttribute": Action(queues.set_queue_attribute),
    "setQueueQuota": Action(queues.set_queue_quota),
    "getQueueInfo": Action(queues.get_queue_info),
    "listQueue": Action(queues.list_queue),
    "setQueueRedrivePolicy": Action(queues.set_queue_redrive_policy),
    "removeQueueRedrivePolicy": Action(queues.remove_queue_redrive_policy),
    "listDeadLetterSourceQueues": Action(queues.list_dead_letter_source_queues),
    "queryPrivilegedQueue": Action(queues.query_privileged_queue),
    "getQueueMeta": Action(copies.get_queue_meta),
    "copyQueue": Action(copies.copy_queue),
    "verifyEMQAdmin": Action(copies.verify_emq_admin),
    "verifyEMQAdminRole": Action(copies.verify_emq_admin_role),
    "setPermission": Action(permissions.set_permission),
    "revokePermission": Action(permissions.revoke_permission),
    "queryPermission": Action(permissions.query_permission),
    "queryPermissionForId": Action(permissions.query_permission_for_id),
    "listPermissions": Action(permissions.list_permissions),
    "createTag": Action(tags.create_tag),
    "deleteTag": Action(tags.delete_tag),
    "getTagInfo": Action(tags.get_tag_info),
    "listTag": Action(tags.list_tag),
    "setUserInfo": Action(users.set_user_info),
    "getUserInfo": Action(users.get_user_info),
    "setUserQuota": Action(users.set_user_quota),
    "getUserQuota": Action(users.get_user_quota),
    "getUserUsedQuota": Action(users.get_user_used_quota),
    "addQueueAlertPolicy": Action(alerts.add_queue_alert_policy),
    "deleteQueueAlertPolicy": Action(alerts.delete_queue_alert_policy),
    "listQueueAlertPolicies": Action(alerts.list_queue_alert_policies),
    "addTagAlertPolicy": Action(alerts.add_tag_alert_policy),
    "deleteTagAlertPolicy": Action(alerts.delete_tag_alert_policy),
    "listTagAlertPolicies": Action(alerts.list_tag_alert_policies),
    "setQueueDailyStatisticsState": Action(alerts.set_queue_daily_statistics_state),
    "getQueueDailyStatisticsState": Action(alerts.get_queue_daily_statistics_state),
    "queryMetric": Action(alerts.query_metric),
    "sendMessage": Action(messages.send_message),
    "sendMessageBatch": Action(messages.send_message_batch),
    "receiveMessage": Action(messages.receive_message, long_poll=True),
    "changeMessageVisibilitySeconds": Action(handles.change_visibility),
    "changeMessageVisibilitySecondsBatch": Action(handles.change_visibility_batch),
    "deleteMessage": Action(handles.delete_message),
    "deleteMessageBatch": Action(handles.delete_message_batch),
    "deadMessage": Action(handles.dead_message),
    "deadMessageBatch": Action(handles.dead_message_batch),
    "peekMessage": Action(peeks.peek_message),
    "deletePeekMessage": Action(peeks.delete_peek_message),
    "deletePeekMessageBatch": Action(peeks.delete_peek_message_batch),
}
