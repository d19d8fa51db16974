"""Answers questions over tables, by DuckDB or by Spark."""
