"""The errors of the demo."""

from __future__ import annotations


class DemoError(Exception):
    """The demo can't go on; the text is one line that names the thing and what to do."""


class Interrupted(BaseException):
    """A signal asked the demo to end. Not an Exception, so that nothing takes it for a failure of
    its own.
    """
