"""Why a figure grows, by series: written by hand after a look at the tables, and put under them by `page`.

Neighbours: `page`. It must not know numbers: those are in the tables.
"""

WHY: dict[str, str] = {}
