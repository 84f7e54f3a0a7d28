from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unswayed.report.text import chance, named, percent, shortened


def test_a_long_text_is_cut_at_its_end_or_in_its_middle():
    assert shortened("automobile", 6) == "autom…"
    assert shortened("photos/cats/0001.jpg", 12, keep_end=True) == "pho…0001.jpg"
    assert named("a" * 10_000, 5).full == "a" * 199 + "…"


def test_what_turns_or_breaks_text_is_replaced():
    assert shortened("a\u202eb\nc\udcff\u2028", 20) == "a�b�c��"
    assert shortened("שלום 猫 👩‍🚀", 20) == "שלום 猫 👩‍🚀"


@given(st.text(), st.integers(1, 40), st.booleans())
def test_any_text_can_be_written_and_is_short(text, length, keep_end):
    short = shortened(text, length, keep_end=keep_end)
    assert len(short) <= length
    assert short.encode().decode() == short


def test_shares_have_two_digits_and_chances_are_never_certain():
    assert [percent(x) for x in (0, 0.0017, 0.017, 0.17)] == ["0 %", "0.17 %", "1.7 %", "17 %"]
    assert [chance(p) for p in (0.0, 0.5, 1.0)] == ["< 1 %", "50 %", "> 99 %"]
