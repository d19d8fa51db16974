"""Sessions of browsers: when they end, and that nobody else can make one."""

from __future__ import annotations

from facade.programs.console.web.sessions import LONGEST_S, Sessions

KEY = "a key of sixteen letters"


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_when_nobody_uses_it_and_after_a_night() -> None:
    clock = Clock()
    sessions = Sessions(KEY, 3600, clock)
    cookie = sessions.sealed(sessions.begin("anna-1", "secret"))
    open_cookie = sessions.sealed(sessions.begin())

    clock.now += 3599
    session = sessions.read(cookie)
    assert session is not None and session.key_secret == "secret" and sessions.should_touch(session)
    cookie = sessions.sealed(session)
    clock.now += 3599
    assert sessions.read(cookie) is not None
    clock.now += 2
    assert sessions.read(cookie) is None
    # Nobody has signed in: there is nothing to end.
    assert sessions.read(open_cookie) is not None

    cookie = sessions.sealed(session)
    clock.now = session.began + LONGEST_S + 1
    assert sessions.read(sessions.sealed(session)) is None


def test_a_cookie_of_another_key_or_that_was_changed_is_none() -> None:
    sessions = Sessions(KEY, 3600)
    cookie = sessions.sealed(sessions.begin("anna-1", "secret"))

    assert Sessions("another key of letters", 3600).read(cookie) is None
    assert Sessions("", 3600).read(cookie) is None
    for bad in ("", cookie[:-4], cookie[:40] + ("A" if cookie[40] != "A" else "B") + cookie[41:], "x" * 5000, "é"):
        assert sessions.read(bad) is None
    assert "secret" not in cookie
    assert "secret" not in repr(sessions.read(cookie))


def test_tokens_differ_each_time_and_fit_their_session_alone() -> None:
    sessions = Sessions(KEY, 3600)
    mine, other = sessions.begin(), sessions.begin()
    token = sessions.token(mine)

    assert token != sessions.token(mine)
    assert sessions.fits(mine, token) and sessions.fits(mine, sessions.token(mine))
    assert not sessions.fits(other, token)
    assert not sessions.fits(mine, "")
