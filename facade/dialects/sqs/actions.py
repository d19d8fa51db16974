"""The actions of SQS by name: all of the service model."""

from __future__ import annotations

from typing import Final

from facade.dialects.sqs.messages import handles, messages, moves
from facade.dialects.sqs.queues import permissions, queues, tags
from facade.dialects.sqs.queues.call import Action
from facade.dialects.sqs.wire import shapes

# Those that change nothing.
READS: Final = frozenset(
    (
        "GetQueueUrl",
        "ListQueues",
        "GetQueueAttributes",
        "ListQueueTags",
        "ListDeadLetterSourceQueues",
        "ListMessageMoveTasks",
    )
)
ACTIONS: Final[dict[str, Action]] = {
    "CreateQueue": Action(shapes.CreateQueue, queues.create_queue),
    "GetQueueUrl": Action(shapes.GetQueueUrl, queues.get_queue_url),
    "ListQueues": Action(shapes.ListQueues, queues.list_queues),
    "GetQueueAttributes": Action(shapes.GetQueueAttributes, queues.get_queue_attributes),
    "SetQueueAttributes": Action(shapes.SetQueueAttributes, queues.set_queue_attributes),
    "DeleteQueue": Action(shapes.OfQueue, queues.delete_queue),
    "PurgeQueue": Action(shapes.OfQueue, queues.purge_queue),
    "SendMessage": Action(shapes.SendMessage, messages.send_message),
    "SendMessageBatch": Action(shapes.SendMessageBatch, messages.send_message_batch),
    "ReceiveMessage": Action(shapes.ReceiveMessage, messages.receive_message, long_poll=True),
    "DeleteMessage": Action(shapes.DeleteMessage, handles.delete_message),
    "DeleteMessageBatch": Action(shapes.DeleteMessageBatch, handles.delete_message_batch),
    "ChangeMessageVisibility": Action(shapes.ChangeMessageVisibility, handles.change_message_visibility),
    "ChangeMessageVisibilityBatch": Action(
        shapes.ChangeMessageVisibilityBatch, handles.change_message_visibility_batch
    ),
    "AddPermission": Action(shapes.AddPermission, permissions.add_permission),
    "RemovePermission": Action(shapes.RemovePermission, permissions.remove_permission),
    "TagQueue": Action(shapes.TagQueue, tags.tag_queue),
    "UntagQueue": Action(shapes.UntagQueue, tags.untag_queue),
    "ListQueueTags": Action(shapes.OfQueue, tags.list_queue_tags),
    "ListDeadLetterSourceQueues": Action(shapes.ListSources, queues.list_dead_letter_source_queues),
    "StartMessageMoveTask": Action(shapes.StartMove, moves.start_message_move_task),
    "CancelMessageMoveTask": Action(shapes.CancelMove, moves.cancel_message_move_task),
    "ListMessageMoveTasks": Action(shapes.ListMoves, moves.list_message_move_tasks),
}
