"""QueryRoute and QueryAssignment: where a topic is. It has one queue, and this endpoint is its
broker, by the address that the client has reached it at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.kinds import types_of
from facade.dialects.rocketmq.queues.names import group_of, record_of, topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, ok
from facade.dialects.rocketmq.wire.rocketmq_pb2 import AddressScheme, Code, Permission

if TYPE_CHECKING:
    from schemas.records import QueueRecord

BROKER: Final = "leaseway"
_MOST_ADDRESSES: Final = 16
_HOST_CHARACTERS: Final = 255
_SCHEMES: Final = (AddressScheme.IPv4, AddressScheme.IPv6, AddressScheme.DOMAIN_NAME)


async def query_route(call: Call) -> pb.QueryRouteResponse:
    """The one queue of a topic."""
    given: pb.QueryRouteRequest = call.body
    topic = topic_of(given.topic)
    record = await record_of(call.engine, call.by, topic)
    return pb.QueryRouteResponse(status=ok(), message_queues=[_queue(call, topic, record, given.endpoints)])


async def query_assignment(call: Call) -> pb.QueryAssignmentResponse:
    """The same queue, to every consumer of a group: each message goes to one of them."""
    given: pb.QueryAssignmentRequest = call.body
    topic = topic_of(given.topic)
    group_of(given.group)
    record = await record_of(call.engine, call.by, topic)
    assignment = pb.Assignment(message_queue=_queue(call, topic, record, given.endpoints))
    return pb.QueryAssignmentResponse(status=ok(), assignments=[assignment])


def _queue(call: Call, topic: str, record: QueueRecord, reached: pb.Endpoints) -> pb.MessageQueue:
    broker = pb.Broker(name=BROKER, id=0, endpoints=_endpoints(call.common.own, reached))
    return pb.MessageQueue(
        topic=pb.Resource(name=topic),
        id=0,
        permission=Permission.READ_WRITE,
        broker=broker,
        accept_message_types=types_of(record),
    )


def _endpoints(own: pb.Endpoints, reached: pb.Endpoints) -> pb.Endpoints:
    """How the client has reached us; by our settings if it does not say. Raises RocketError."""
    if not reached.addresses:
        return own
    if reached.scheme not in _SCHEMES or len(reached.addresses) > _MOST_ADDRESSES:
        raise RocketError(
            Code.ILLEGAL_ACCESS_POINT, f"an access point has a scheme and 1 to {_MOST_ADDRESSES} addresses"
        )
    for address in reached.addresses:
        if not 1 <= len(address.host) <= _HOST_CHARACTERS or not 1 <= address.port <= 65_535:
            raise RocketError(
                Code.ILLEGAL_ACCESS_POINT,
                f"an address has a host and a port, given {address.host[:200]!r}:{address.port}",
            )
    if reached.scheme == AddressScheme.DOMAIN_NAME and len(reached.addresses) > 1:
        return pb.Endpoints(scheme=reached.scheme, addresses=reached.addresses[:1])  # clients can't read more
    return reached
