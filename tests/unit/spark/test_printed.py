"""Rows as text."""

from __future__ import annotations

from spark.printed import cell, csv_line, table


def test_a_cell_is_text_hex_or_nothing() -> None:
    assert [cell(value) for value in (None, b"\x00\xff", bytearray(b"a"), 1.5, True, "x")] == [
        "", "00ff", "61", "1.5", "True", "x"
    ]  # fmt: skip


def test_csv_quotes_what_needs_it() -> None:
    assert csv_line(["a,b", 'say "x"', "", "1\n2"]) == '"a,b","say ""x""",,"1\n2"'


def test_a_table_cuts_its_cells_and_counts_its_rows() -> None:
    assert list(table(["n", "body"], [["1", "x" * 70], ["22", "a\nb"]])) == [
        "n   body", "--  " + "-" * 60, "1   " + "x" * 60, "22  a b", "(2 rows)"
    ]  # fmt: skip
    assert list(table(["n"], [])) == ["n", "-", "(0 rows)"]
