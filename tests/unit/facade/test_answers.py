"""Answers for the native library are taken together, and once."""

from __future__ import annotations

import msgspec

from facade.http.sockets.answers import CUT, DONE, OTHER, PASSED, WRITE, Answers


def test_what_was_answered_is_taken_together_in_its_order() -> None:
    asked: list[None] = []
    answers = Answers(lambda: asked.append(None))
    answers.other.append((1, b"head", b"body"))
    answers.soon()
    answers.passed.append(2)
    answers.done += [(WRITE, 3, b"bytes"), (CUT, 3, b"")]
    answers.soon()
    batch = msgspec.msgpack.decode(answers.take())
    assert batch == [[DONE, [[WRITE, 3, b"bytes"], [CUT, 3, b""]]], [OTHER, [[1, b"head", b"body"]]], [PASSED, [2]]]
    assert len(asked) == 1


def test_what_was_taken_is_not_taken_again() -> None:
    asked: list[None] = []
    answers = Answers(lambda: asked.append(None))
    answers.passed.append(2)
    answers.soon()
    assert answers.take()
    assert answers.take() == b""
    answers.passed.append(3)
    answers.soon()
    assert msgspec.msgpack.decode(answers.take()) == [[PASSED, [3]]]
    assert len(asked) == 2
