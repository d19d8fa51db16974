"""A raw gRPC client of the endpoint: any bytes to any method, with any metadata.

It knows no client's habits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import grpc

from facade.dialects.rocketmq.actions import ACTIONS
from facade.dialects.rocketmq.server import SERVICE
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb

CLIENT = (("x-mq-client-id", "raw"),)


class Raw:
    """A connection of its own. Bytes in, bytes out."""

    def __init__(self, endpoints: str) -> None:
        options = [
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.channel = grpc.insecure_channel(endpoints, options=options)

    def unary(
        self, method: str, body: bytes, metadata: Iterable[tuple[str, Any]] = CLIENT, timeout: float = 20
    ) -> bytes:
        """Raises grpc.RpcError."""
        answer: bytes = self.channel.unary_unary(f"/{SERVICE}/{method}")(
            body, metadata=tuple(metadata), timeout=timeout
        )
        return answer

    def ask(self, method: str, request: Any, metadata: Iterable[tuple[str, Any]] = CLIENT) -> Any:
        """A method of one answer, which is read."""
        return ACTIONS[method].response.FromString(self.unary(method, request.SerializeToString(), metadata))

    def receive(
        self, request: pb.ReceiveMessageRequest, metadata: Iterable[tuple[str, Any]] = CLIENT, timeout: float = 30
    ) -> Any:
        """The stream of a receive."""
        call = self.channel.unary_stream(f"/{SERVICE}/ReceiveMessage")
        return call(request.SerializeToString(), metadata=tuple(metadata), timeout=timeout)

    def received(self, request: pb.ReceiveMessageRequest, **more: Any) -> list[pb.ReceiveMessageResponse]:
        """All of the stream."""
        return [pb.ReceiveMessageResponse.FromString(one) for one in self.receive(request, **more)]

    def telemetry(
        self, requests: Iterator[bytes], metadata: Iterable[tuple[str, Any]] = CLIENT, timeout: float = 30
    ) -> Any:
        """The telemetry stream."""
        return self.channel.stream_stream(f"/{SERVICE}/Telemetry")(requests, metadata=tuple(metadata), timeout=timeout)


@contextlib.contextmanager
def connected(endpoints: str) -> Iterator[Raw]:
    raw = Raw(endpoints)
    try:
        yield raw
    finally:
        raw.channel.close()


def sending(topic: str, *bodies: bytes, **system: Any) -> pb.SendMessageRequest:
    """Messages with ids of their own."""
    return pb.SendMessageRequest(
        messages=[
            pb.Message(
                topic=pb.Resource(name=topic),
                system_properties=pb.SystemProperties(**{"message_id": f"id-{topic}-{number}", **system}),
                body=body,
            )
            for number, body in enumerate(bodies)
        ]
    )


def receiving(topic: str, group: str = "raw", wait_s: float = 0, **more: Any) -> pb.ReceiveMessageRequest:
    request = pb.ReceiveMessageRequest(
        group=pb.Resource(name=group),
        message_queue=pb.MessageQueue(topic=pb.Resource(name=topic)),
        batch_size=32,
        **more,
    )
    request.long_polling_timeout.FromMilliseconds(int(wait_s * 1000))
    if not more.get("auto_renew") and not request.HasField("invisible_duration"):
        request.invisible_duration.FromSeconds(15)
    return request
