"""Names and words of settings in the native API."""

from __future__ import annotations

from schemas.records.native_settings import SETTINGS, description, in_seconds, wire_name, words
from schemas.records.settings import TABLE


def test_what_is_in_milliseconds_is_in_seconds_there() -> None:
    assert wire_name(TABLE["lease_ms"]) == "lease_seconds"
    assert in_seconds(TABLE["lease_ms"])
    assert words(TABLE["lease_ms"]) == "How long a delivery is leased. In seconds."
    assert description(TABLE["lease_ms"]) == "How long a delivery is leased. In seconds. Default: 30 s."


def test_other_settings_keep_their_names_and_say_what_can_not_be_changed() -> None:
    assert wire_name(TABLE["fifo"]) == "fifo"
    assert description(TABLE["fifo"]).endswith("one after the other. Default: false. Can't be changed later.")
    assert description(TABLE["max_message_bytes"]).endswith("Default: 262144.")


def test_rights_are_no_settings_there() -> None:
    assert {"grants", "policy"} & {setting.name for setting in SETTINGS} == set()
    assert len(SETTINGS) > 20


def test_every_default_is_whole_seconds() -> None:
    assert [setting.name for setting in SETTINGS if in_seconds(setting) and setting.default % 1000] == []
