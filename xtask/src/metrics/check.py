"""Compares metrics with what the report in JSON says: check.py PROGRAM DUMP..."""

import json
import subprocess
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as prometheus

program, *dumps = sys.argv[1:]


def written(*args):
    command = [program, *dumps, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def samples(parser, text):
    found = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.type == "gauge", family
        for sample in family.samples:
            assert sample.timestamp is None, sample
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


report = json.loads(written("--format", "json"))
text = written("--format", "openmetrics", "--label", 'service=a "shop" \\ or two')
metrics = samples(openmetrics, text)
assert metrics == samples(prometheus, text)
labels = {"service": 'a "shop" \\ or two'}


def value(name, **more):
    return metrics[("heapdiff_" + name, tuple(sorted({**labels, **more}.items())))]


last = report["snapshots"][-1] if "snapshots" in report else report["snapshot"]
assert value("heap_reachable_bytes") == last["reachable_bytes"]
assert value("heap_objects") == last["reachable_objects"]
assert round(value("snapshot_timestamp_seconds") * 1000) == last["taken_ms"]
assert report["suspects"]
for suspect in report["suspects"]:
    own = {"rank": str(suspect["rank"]), "holder": suspect["holder"], "class": suspect["class"]}
    if "delta" in report:
        own["verdict"] = suspect["verdict"]
        assert value("suspect_growth_bytes", **own) == suspect["growth"]["retained_bytes"]
        assert value("suspect_retained_bytes", **own) == suspect["retained_bytes"][-1]
    else:
        assert value("suspect_retained_bytes", **own) == suspect["retained_bytes"]
print(f"{len(metrics)} metrics of {len(dumps)} dumps are read alike")
