//! Tests the labels of threads in reports, with a service that forgets bookings of one tenant.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use testdata::jvm::{DumpOptions, Launch};
use testdata::programs::{agent_library, booking};

use crate::support::{folder, jdks, run};

fn report(home: &Path, args: &[&str]) -> Value {
    let json = [args, &["--format", "json"]].concat();
    let report = run(home, &json).well().stdout;
    serde_json::from_str(&report).expect("JSON")
}

fn label(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": value })
}

#[test]
fn reports_name_the_tenant_whose_objects_survive() {
    for jdk in jdks() {
        let home = folder();
        let path = home.path().join("t.db");
        let options = format!(
            "interval=0,max_samples=200000,tick=200ms,trace={}",
            path.display()
        );
        let classes = jdk.compile_all(&booking()).expect("classes");
        let launch = Launch::class(&jdk, classes, "Booking").agent(&agent_library(), &options);
        let mut jvm = launch.flag("-Xmx256m").start().expect("a JVM");
        jvm.wait_ready(1).expect("READY 1");
        jvm.dump(&home.path().join("a.hprof"), DumpOptions::default())
            .expect("a dump");
        let mut logged: BTreeMap<String, u64> = BTreeMap::new();
        for _ in 0..2 {
            jvm.proceed().expect("a line");
            for line in jvm.lines_until_ready().expect("READY") {
                let line = line.strip_prefix("BOOKINGS ").expect("a number");
                let (number, tenant) = line.split_once(' ').expect("a tenant");
                logged.insert(tenant.to_owned(), number.parse().expect("a number"));
            }
        }
        jvm.dump(&home.path().join("b.hprof"), DumpOptions::default())
            .expect("a dump");
        assert!(jvm.finish().expect("an end"));

        let [acme, globex] = ["acme", "globex"].map(|tenant| logged[tenant]);
        assert_eq!([acme, globex], [500, 50]);
        // All bookings have the same size, because each booking consists of one object and one array.
        let permille = (acme * 1000 + 275) / (acme + globex);
        let route = label("route", "POST /book");
        let both = json!([route, label("tenant", "acme")]);
        let comparison = report(home.path(), &["a.hprof", "b.hprof"]);
        let suspect = &comparison["suspects"][0];
        assert_eq!(suspect["holder"], "Booking.bookings", "{comparison:#}");
        let labels = &suspect["labels"];
        assert_eq!(labels["samples"], 2 * (acme + globex), "{labels:#}");
        assert_eq!(labels["common"]["labels"], both, "{labels:#}");
        assert_eq!(labels["common"]["permille"], permille, "{labels:#}");
        assert_eq!(labels["common"]["samples"], 2 * acme, "{labels:#}");
        let shares: Vec<(&Value, &Value)> = labels["shares"]
            .as_array()
            .expect("labels")
            .iter()
            .map(|share| (&share["labels"][0], &share["samples"]))
            .collect();
        let expected = [
            (&route, &json!(2 * (acme + globex))),
            (&both[1], &json!(2 * acme)),
            (&label("tenant", "globex"), &json!(2 * globex)),
        ];
        assert_eq!(shares, expected);
        // In a stack, the names of threads are shown without labels.
        let threads = suspect["stacks"][0]["threads"].as_array().expect("threads");
        let is_plain = |name: &Value| {
            name.as_str()
                .is_some_and(|n| n.starts_with("pool-1-thread-"))
        };
        assert!(threads.iter().all(is_plain), "{threads:?}");
        let text = run(home.path(), &["a.hprof", "b.hprof"]).well().stdout;
        let sentence = "labels   90.9% of the surviving bytes came from route POST /book, tenant acme (1,000 of 1,100";
        assert!(text.contains(sentence), "{text}");

        let single = report(home.path(), &["b.hprof"]);
        let suspects = single["suspects"].as_array().expect("suspects");
        let one = suspects.iter().find(|s| s["holder"] == "Booking.bookings");
        let one = one.unwrap_or_else(|| panic!("{single:#}"));
        assert_eq!(one["labels"]["common"]["labels"], both);

        let sites = report(home.path(), &["sites", "b.hprof", "--focus", "Ticket"]);
        assert_eq!(sites["labels"]["common"]["labels"], both);
        let sql = "select labels, count(*) as n from samples where class = 'Booking$Room' and labels is not null and collected_ms is null group by labels order by labels";
        let rows = report(home.path(), &["query", "b.hprof", sql]);
        let rows = rows["rows"].as_array().expect("rows");
        assert_eq!(rows[0][0], "tenant=acme, route=GET /rooms", "{rows:?}");
        let rooms = rows.iter().map(|row| row[1].as_u64().expect("a number"));
        assert_eq!((rows.len(), rooms.sum::<u64>()), (2, 500), "{rows:?}");

        let trace = report(home.path(), &["trace", "top", "t.db"]);
        let candidates = trace["candidates"].as_array().expect("candidates");
        let ticket = candidates.iter().find(|c| c["class"] == "Booking$Ticket");
        let ticket = ticket.unwrap_or_else(|| panic!("{trace:#}"));
        assert_eq!(ticket["labels"]["common"]["labels"], both, "{ticket:#}");
        let globex = ["--focus", "Ticket", "--label", "tenant=globex"];
        let samples = report(
            home.path(),
            &[&["trace", "samples", "t.db"], &globex[..]].concat(),
        );
        // The trace also contains the 25 bookings of this tenant from the first phase. The 50 bookings that the program
        // has printed do not include them.
        assert_eq!(samples["totals"]["samples"], 2 * 75, "{samples:#}");
        assert_eq!(
            samples["samples"][0]["labels"][0],
            label("tenant", "globex")
        );

        let text = run(
            home.path(),
            &[&["trace", "samples", "t.db"], &globex[..]].concat(),
        );
        let text = text.well().stdout;
        let heading = "150 live samples that match Ticket, with labels that match tenant=globex: ";
        assert!(text.contains(heading), "{text}");
        assert!(
            text.contains("    labels   tenant=globex, route=POST /book\n"),
            "{text}"
        );

        // A redacted dump has neither names of threads nor labels.
        run(home.path(), &["redact", "b.hprof", "-o", "r.hprof"]).well();
        let redacted = report(home.path(), &["sites", "r.hprof", "--focus", "Ticket"]);
        assert!(redacted.get("labels").is_none(), "{redacted:#}");
    }
}
