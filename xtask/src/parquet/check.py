"""Compares exported tables with what reports say: check.py PROGRAM DUMP FOLDER"""

import json
import subprocess
import sys

import pyarrow.parquet as pq

program, dump, folder = sys.argv[1:]


def report(*args):
    command = [program, args[0], dump, *args[1:], "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def table(name):
    return pq.read_table(f"{folder}/{name}.parquet")


def by_class(rows):
    sums = {}
    for name, objects, size in rows:
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + objects, before[1] + size)
    return sums


objects = table("objects")
assert objects.schema.metadata[b"service"] == b"shop", objects.schema.metadata
types = {field.name: str(field.type) for field in objects.schema}
assert (types["id"], types["class"], types["shallow_bytes"]) == ("uint64", "string", "int64"), types

columns = (objects.column(name).to_pylist() for name in ("class", "shallow_bytes"))
found = by_class((name, 1, size) for name, size in zip(*columns))
# This check needs the object graph. Without it, only the agent's classes are known, but not all objects of the agent.
histo = report("histo", "--retained")["classes"]
expected = by_class((c["class"], c["objects"], c["shallow_bytes"]) for c in histo)
assert found == expected, "objects.parquet and histo differ"

most = max(size or 0 for size in objects.column("retained_bytes").to_pylist())
assert most == report("top", "--top", "1")["objects"][0]["retained_bytes"], most

ids = set(objects.column("id").to_pylist())
assert len(ids) == objects.num_rows
refs = table("refs")
assert set(refs.column("source_id").to_pylist()) <= ids

for name in ("objects", "classes", "refs", "roots", "strings", "threads", "frames", "samples"):
    rows = report("query", f"select count(*) from {name}")["rows"][0][0]
    assert table(name).num_rows == rows, (name, rows)
    print(f"{name}: {rows} rows")
