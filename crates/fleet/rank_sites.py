#!/usr/bin/env python3
"""Ranks allocation sites by leaked bytes, over all hosts of all services.

    spark-submit rank_sites.py FLEET [--top 20] [--since 2026-11-01] [--until 2026-12-01] [--json OUT]

FLEET is a folder that `heapdiff fleet` wrote, local or on any storage that Spark can read. A site
leaks in a run if its live bytes grow over the observed hours by more than the estimation error, and
do not shrink again (see `leaking` below). Sites on different hosts are the same if their class and
methods are the same. Line numbers are ignored, so that builds can be compared.
"""

import argparse
import json

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

HOUR_MS = 3_600_000


def site_hours(spark, fleet, since=None, until=None):
    """Returns one row for each service, host, run, site and hour."""
    hours = spark.read.parquet(f"{fleet}/sites")
    if since:
        hours = hours.where(F.col("day") >= F.lit(since).cast("date"))
    if until:
        hours = hours.where(F.col("day") < F.lit(until).cast("date"))
    # Sites that differ only in their line numbers are merged.
    return hours.groupBy("service", "host", "run", "site", "hour_ms").agg(
        F.first("class").alias("class"),
        F.first("stack").alias("stack"),
        F.sum("live_bytes").alias("live_bytes"),
        F.sum("live_objects").alias("live_objects"),
        F.sum("live_bytes_variance").alias("variance"),
        F.sum("allocated_bytes").alias("allocated_bytes"),
        F.sum("collected_bytes").alias("collected_bytes"),
    )


def run_trends(hours):
    """Returns one row for each service, host, run and site, with the change of its live bytes."""
    by_run = ["service", "host", "run", "site"]
    in_time = Window.partitionBy(*by_run).orderBy("hour_ms")
    steps = hours.withColumn("before", F.lag("live_bytes").over(in_time)).withColumn(
        "lost", F.greatest(F.col("before") - F.col("live_bytes"), F.lit(0))
    )
    trends = steps.groupBy(*by_run).agg(
        F.first("class").alias("class"),
        F.first("stack").alias("stack"),
        F.count("*").alias("hours"),
        F.min_by("live_bytes", "hour_ms").alias("first_bytes"),
        F.max_by("live_bytes", "hour_ms").alias("last_bytes"),
        F.max_by("live_objects", "hour_ms").alias("last_objects"),
        F.max_by("variance", "hour_ms").alias("variance"),
        (F.regr_slope("live_bytes", F.col("hour_ms") / HOUR_MS)).alias("slope"),
        F.median("live_bytes").alias("median_bytes"),
        F.coalesce(F.sum("lost"), F.lit(0)).alias("lost_bytes"),
        F.sum("allocated_bytes").alias("allocated_bytes"),
        F.sum("collected_bytes").alias("collected_bytes"),
    )
    growth = F.col("last_bytes") - F.col("first_bytes")
    # Growth in the second half. A cache that fills once and stays full has none.
    late = F.col("last_bytes") - F.col("median_bytes")
    error = 2 * F.sqrt("variance")
    return trends.withColumn("growth_bytes", growth).withColumn(
        "leaking",
        (F.col("hours") >= 3)
        & (growth > error)
        & (F.col("slope") > 0)
        & (late > growth / 4)
        & (F.col("lost_bytes") < growth / 4),
    )


def ranking(trends):
    """Returns one row for each service and leaking site, the worst first. `hosts` counts all hosts of the service."""
    services = trends.groupBy("service").agg(F.countDistinct("host").alias("hosts"))
    leaking = F.col("leaking").cast("int")
    return (
        trends.groupBy("service", "site")
        .agg(
            F.first("class").alias("class"),
            F.first("stack").alias("stack"),
            F.countDistinct(F.when(F.col("leaking"), F.col("host"))).alias("leaking_hosts"),
            F.sum(leaking * F.col("growth_bytes")).alias("growth_bytes"),
            F.sum(leaking * F.col("slope")).alias("bytes_per_hour"),
            F.sum("last_bytes").alias("live_bytes"),
            F.sum("allocated_bytes").alias("allocated_bytes"),
        )
        .where("leaking_hosts > 0")
        .join(services, "service")
        .orderBy(F.desc("growth_bytes"), "service", "site")
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("fleet")
    arguments.add_argument("--top", type=int, default=20)
    arguments.add_argument("--since", help="first day, as in 2026-11-01")
    arguments.add_argument("--until", help="the day after the last")
    arguments.add_argument("--json", help="write the ranking there, one object a line")
    options = arguments.parse_args()

    spark = SparkSession.builder.appName("heapdiff: leaking sites").getOrCreate()
    hours = site_hours(spark, options.fleet, options.since, options.until)
    top = [row.asDict() for row in ranking(run_trends(hours)).limit(options.top).collect()]
    spark.stop()
    for rank, site in enumerate(top, 1):
        print(
            f"{rank:3} {site['service']}: {site['class']}, "
            f"{site['growth_bytes'] / 1e6:.1f} MB more, {site['bytes_per_hour'] / 1e6:.2f} MB/h, "
            f"on {site['leaking_hosts']} of {site['hosts']} hosts"
        )
        print("      at " + "\n         ".join(reversed(site["stack"].split(";")[-5:])))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            for site in top:
                out.write(json.dumps(site, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
