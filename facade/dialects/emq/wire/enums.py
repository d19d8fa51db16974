"""Enums of EMQ. On the wire they are plain numbers, and a number that is not here is no error."""

from __future__ import annotations

from enum import IntEnum


class Permission(IntEnum):
    """What a developer may do to a queue. The numbers are no order: PEEK_MESSAGE is less than
    ADMIN_QUEUE.

    Clients before 2017-09 end with FULL_CONTROL = 9, which is PEEK_MESSAGE here.
    """

    NONE = 0
    SEND_MESSAGE = 1
    RECEIVE_MESSAGE = 2
    SEND_RECEIVE_MESSAGE = 3
    HANDLE_MESSAGE = 4
    SEND_HANDLE_MESSAGE = 5
    GET_QUEUE_INFO = 6
    USE_QUEUE = 7
    ADMIN_QUEUE = 8
    PEEK_MESSAGE = 9
    DELETE_PEEK_MESSAGE = 10
    FULL_CONTROL = 11


class LogicalOperator(IntEnum):
    """How the attributes of a filter are joined."""

    AND = 0
    OR = 1


class AlertType(IntEnum):
    """What an alert policy watches."""

    SEND_REQUEST = 0
    RECEIVE_REQUEST = 1
    CHANGE_REQUEST = 2
    DELETE_REQUEST = 3
    SINGLE_SEND_REQUEST = 4
    BATCH_SEND_REQUEST = 5
    SHORT_RECEIVE_REQUEST = 6
    LONG_RECEIVE_REQUEST = 7
    QUEUE_MESSAGE_NUMBER = 8


class Measurement(IntEnum):
    """What an alert policy compares with its threshold; latencies are in ms."""

    LATENCY = 0
    LATENCY_P999 = 1
    COUNT = 2


class ApplicationError(IntEnum):
    """Thrift's own errors, of a call that does not come to a method."""

    UNKNOWN_METHOD = 1
    INVALID_MESSAGE_TYPE = 2
    INTERNAL_ERROR = 6
    PROTOCOL_ERROR = 7
