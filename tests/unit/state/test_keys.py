"""How keys are spelled, and that each has a name of its own."""

from __future__ import annotations

from state.keys import Unit, UnitKeys, lock_key, quota_key, wake_channel, wake_up

UNIT = Unit("0123456789ab", 3)


def test_all_keys_of_a_unit_have_one_hash_tag_so_that_they_stay_together() -> None:
    keys = UnitKeys("lw", UNIT)
    names = [*keys.all(), *keys.tag(0).all(), *keys.tag(7).all()]
    assert len(set(names)) == len(names) == 23
    assert all(name.startswith("lw:{0123456789ab:3}:") for name in names)


def test_keys_of_two_units_and_of_two_services_are_apart() -> None:
    others = [UnitKeys("lw", Unit("0123456789ab", 13)), UnitKeys("lw", Unit("ba9876543210", 3)), UnitKeys("lw2", UNIT)]
    names = [name for keys in (UnitKeys("lw", UNIT), *others) for name in (*keys.all(), *keys.tag(0).all())]
    assert len(set(names)) == len(names)


def test_a_wake_up_says_who_wakes() -> None:
    assert wake_channel("lw", "0123456789ab") == "lw:wake:0123456789ab"
    assert wake_up(3, "f00d") == "3 f00d"


def test_locks_and_quotas_are_no_keys_of_a_unit() -> None:
    assert (lock_key("lw", "control:orders"), quota_key("lw", "orders")) == (
        "lw:lock:control:orders",
        "lw:quota:orders",
    )
