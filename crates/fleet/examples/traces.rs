//! Writes traces of a simulated fleet of JVMs. `traces FOLDER` writes `FOLDER/SERVICE-HOST.db` for each host. It prints
//! the sites that leak in this fleet, one JSON object per line.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::PathBuf;

use heapdiff_trace::synthetic::{self, SITES, Scene, SceneSite};

/// Number of ticks (writes to a trace): three an hour for thirty hours. So the ticks are on two or three days.
const TICKS: i64 = 90;
const SPAN_MS: i64 = 1_200_000;
const HOUR_MS: i64 = 3_600_000;

/// A service of the simulated fleet, and its number of hosts. The program leaks on the first `leaking` hosts.
struct Service {
    name: &'static str,
    hosts: usize,
    leaking: usize,
    leak: SceneSite<'static>,
    /// Allocation sites that do not leak: caches, sessions, tables and short-lived strings.
    rest: &'static [SceneSite<'static>],
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: traces FOLDER")?);
    let rest = &SITES[1..];
    let orders = SceneSite {
        class: "com.acme.Order",
        frames: &[
            ("com.acme.Depot", "keep", "Depot.java", 77),
            ("com.acme.Depot", "run", "Depot.java", 20),
        ],
        size: 640,
        live: |t| t * 48,
        churn: 0,
    };
    let services = [
        Service {
            name: "shop",
            hosts: 3,
            leaking: 3,
            leak: SITES[0],
            rest,
        },
        Service {
            name: "depot",
            hosts: 3,
            leaking: 1,
            leak: orders,
            rest,
        },
        Service {
            name: "mail",
            hosts: 2,
            leaking: 0,
            leak: orders,
            rest,
        },
    ];
    for service in &services {
        for host in 0..service.hosts {
            let mut sites = service.rest.to_vec();
            if host < service.leaking {
                sites.push(service.leak);
            }
            let scene = Scene {
                sites: &sites,
                ticks: TICKS,
                span_ms: SPAN_MS,
                ..Scene::default()
            };
            let file = format!("{}-{}-{host}.db", service.name, service.name);
            synthetic::write(&folder.join(file), &scene)?;
        }
        if service.leaking > 0 {
            let SceneSite {
                class, live, size, ..
            } = service.leak;
            // Growth is counted from the end of the hour in which the first tick (period of the trace) ends.
            let hour_end = (synthetic::STARTED_MS + SPAN_MS + HOUR_MS - 1) / HOUR_MS * HOUR_MS;
            let first = (hour_end - synthetic::STARTED_MS) / SPAN_MS;
            let growth = (live(TICKS) - live(first)) * size * service.leaking as i64;
            println!(
                "{{\"service\":\"{}\",\"class\":\"{class}\",\"hosts\":{},\"leaking_hosts\":{},\"growth_bytes\":{growth}}}",
                service.name, service.hosts, service.leaking
            );
        }
    }
    Ok(())
}
