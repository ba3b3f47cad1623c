"""Reads exported files in the current directory with pandas and DuckDB, by the documentation's own
snippets, and prints as JSON what each of them found."""

import json
import math
import re
import sys

import duckdb
import pandas as pd


def plain(value):
    """A cell as JSON has it; times as seconds since 1970."""
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, pd.Timestamp):
        return int(value.timestamp())
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def of_pandas(frame):
    rows = frame.astype(object).itertuples(index=False)
    return [dict(zip(frame.columns, map(plain, row))) for row in rows]


def of_duckdb(relation):
    # Times in zones would want one more package to become Python's.
    seconds = "SELECT * REPLACE (CAST(epoch(started) AS BIGINT) AS started) FROM it"
    rows = relation.query("it", seconds).fetchall()
    return [dict(zip(relation.columns, map(plain, row))) for row in rows]


with open(sys.argv[1]) as documentation:
    snippets = re.findall(r"^```python\n(.*?)^```", documentation.read(), re.M | re.S)
assert len(snippets) > 2, "the documentation has lost its snippets"

# What the snippets print is for people; ours goes to standard output alone.
output, sys.stdout = sys.stdout, sys.stderr
names = {}
for snippet in snippets:
    exec(snippet, names)
    if "import duckdb" in snippet:
        in_duckdb = names["from_csv"], names["from_json"]
    elif "from_csv" in snippet:
        in_pandas = names["from_csv"], names["from_json"]
sys.stdout = output

samples = names["samples"]
series = pd.read_parquet("series.parquet")
groups = series.groupby(["boot", "source", "counter"], sort=True)
parquet = duckdb.sql("SELECT * FROM 'samples.parquet'")
duckdb_series = """
    SELECT boot, source, counter, count(*), count(value), sum(value), min(time), max(time)
    FROM 'series.parquet' GROUP BY ALL ORDER BY ALL
"""
json.dump(
    {
        "samples": {
            "pandas, parquet": of_pandas(samples),
            "pandas, csv": of_pandas(in_pandas[0]),
            "pandas, json": of_pandas(in_pandas[1]),
            "duckdb, parquet": of_duckdb(parquet),
            "duckdb, csv": of_duckdb(in_duckdb[0]),
            "duckdb, json": of_duckdb(in_duckdb[1]),
        },
        "types": {
            "pandas": {name: str(kind) for name, kind in samples.dtypes.items()},
            "duckdb": dict(zip(parquet.columns, map(str, parquet.types))),
        },
        "series": {
            "pandas": [
                [*key, len(it), int(it.value.count()), it.value.sum(),
                 int(it.time.min()), int(it.time.max())]
                for key, it in groups
            ],
            "duckdb": [list(row) for row in duckdb.sql(duckdb_series).fetchall()],
        },
    },
    output,
)
