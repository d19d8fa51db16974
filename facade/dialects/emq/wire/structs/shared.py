"""Structs that all services share: version, exceptions."""

from __future__ import annotations

from typing import Annotated

from facade.dialects.emq.wire.kinds import I32, Wire


class GalaxyEmqServiceException(Wire, frozen=True, kw_only=True):
    """Why a call, or an entry of a batch, has failed. `error_code` is an ErrorCode; clients before
    2017 do not know `queue_name`.
    """

    error_code: Annotated[I32 | None, 1] = None
    err_msg: Annotated[str | None, 2] = None
    details: Annotated[str | None, 3] = None
    request_id: Annotated[str | None, 4] = None
    queue_name: Annotated[str | None, 5] = None


class Version(Wire, frozen=True, kw_only=True):
    """Of the service or a client. The IDL requires the first four, and gives them defaults: what a
    client leaves out has its default here.
    """

    major: Annotated[I32, 1] = 1
    minor: Annotated[I32, 2] = 0
    revision: Annotated[I32, 3] = 0
    date: Annotated[str, 4] = "19700101"
    details: Annotated[str | None, 5] = ""


class ApplicationException(Wire, frozen=True, kw_only=True):
    """Thrift's own answer to a call that does not come to a method. `type` is an
    ApplicationError.
    """

    message: Annotated[str | None, 1] = None
    type: Annotated[I32 | None, 2] = None
