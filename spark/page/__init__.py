"""The report as one HTML page: inline SVG and CSS, no script, nothing loaded from anywhere.

`figures.py` asks Spark for few rows; the rest is plain Python. Everything that is shown is escaped:
bodies are written by strangers.
"""

MOST_ROWS = 1_000  # That a table is given: its totals are of all rows only when there are fewer.
