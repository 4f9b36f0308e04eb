//! Measures the latency that clients of a service see during a dump. Requests are due at fixed times, and each latency
//! counts from the time when the request was due. A connection sends one request at a time, so a late answer delays the
//! next requests, and these delays count too.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use super::service::{Service, Tools, loading};

pub(super) const HEAD: &str = "\
## Latency of a service's requests while a dump is taken

Four connections, 100 requests per second each; a latency is measured from the planned time of the request. The table covers the time from one second before the dump to one second after it.

| JVM | dump | seconds | requests | p50 ms | p99 ms | max ms |
|---|---|---|---|---|---|---|
";

const CONNECTIONS: u32 = 4;
const PERIOD: Duration = Duration::from_millis(10);
/// Requests are made from this time before each dump until this time after it.
const AROUND: Duration = Duration::from_secs(1);

/// When a request was due, in seconds from the start of the dump, and the latency of the request in milliseconds.
pub(super) type Sample = (f64, f64);

/// The measurements on one JVM.
pub(super) struct Measured {
    pub(super) rows: String,
    /// Two series of latencies, each with its name: during a forked dump, and during the JVM's own dump.
    pub(super) series: Vec<(&'static str, Vec<Sample>)>,
}

/// Measures a service without a dump, during a forked dump, and during the JVM's own dump.
pub(super) fn latency(jdk: &Jdk, live: u32, more: &[String], tools: &Tools) -> Result<Measured> {
    let mut flags = loading(jdk);
    let heap = live * 2;
    let heap = [
        "-XX:+UseG1GC".to_owned(),
        format!("-Xms{heap}m"),
        format!("-Xmx{heap}m"),
    ];
    flags.extend(heap);
    flags.extend_from_slice(more);
    let service = Service::start(jdk, live, 0, &flags)?;
    let file = tools.scratch.join("latency.hprof");
    // Warm up: the first dump loads the agent, and the requests make the JVM compile the code that serves them.
    tools.forked(service.target.pid(), &file)?;
    requests_around(service.port, || {
        sleep(Duration::from_secs(5));
        Ok(())
    })?;
    let mut measured = Measured {
        rows: String::new(),
        series: Vec::new(),
    };
    for name in ["none", "forked", "`GC.heap_dump`"] {
        let (samples, took) = requests_around(service.port, || match name {
            "forked" => tools.forked(service.target.pid(), &file).map(drop),
            "none" => {
                sleep(Duration::from_secs(5));
                Ok(())
            }
            _ => tools.ordinary(&service.target, &file).map(drop),
        })?;
        let mut times: Vec<f64> = samples.iter().map(|&(_, ms)| ms).collect();
        times.sort_by(f64::total_cmp);
        let part = |thousandths: usize| times.get(times.len() * thousandths / 1000);
        let (p50, p99, max) = (part(500), part(990), times.last());
        let [p50, p99, max] = [p50, p99, max].map(|time| time.copied().unwrap_or(0.0));
        measured.rows += &format!(
            "| {} | {name} | {:.1} | {} | {p50:.2} | {p99:.2} | {max:.1} |\n",
            jdk.version(),
            took.as_secs_f64(),
            times.len(),
        );
        if name != "none" {
            measured.series.push((name, samples));
        }
    }
    ensure!(service.target.finish()?, "the JVM ended with an error");
    Ok(measured)
}

/// Makes requests from one second before `work` until one second after it. Returns the requests and the duration of
/// `work`.
fn requests_around(
    port: u16,
    work: impl FnOnce() -> Result<()>,
) -> Result<(Vec<Sample>, Duration)> {
    let stop = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let begun = start + AROUND;
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|at| {
            let stop = Arc::clone(&stop);
            let first = start + PERIOD * at / CONNECTIONS;
            thread::spawn(move || client(port, (first, begun), &stop))
        })
        .collect();
    sleep(begun.saturating_duration_since(Instant::now()));
    let done = work();
    let took = begun.elapsed();
    sleep(AROUND);
    stop.store(true, Relaxed);
    let mut samples = Vec::new();
    for client in clients {
        let own = client.join().ok().context("a client thread panicked")??;
        samples.extend(own);
    }
    done?;
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok((samples, took))
}

fn client(port: u16, (first, begun): (Instant, Instant), stop: &AtomicBool) -> Result<Vec<Sample>> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_nodelay(true)?;
    let mut answers = BufReader::new(socket.try_clone()?);
    let (mut samples, mut due, mut line) = (Vec::new(), first, String::new());
    while !stop.load(Relaxed) {
        sleep(due.saturating_duration_since(Instant::now()));
        socket.write_all(format!("{}\n", samples.len()).as_bytes())?;
        line.clear();
        ensure!(
            answers.read_line(&mut line)? > 0,
            "the service closed the connection"
        );
        let ms = due.elapsed().as_secs_f64() * 1000.0;
        let at = match due.checked_duration_since(begun) {
            Some(after) => after.as_secs_f64(),
            None => -begun.duration_since(due).as_secs_f64(),
        };
        samples.push((at, ms));
        due += PERIOD;
    }
    Ok(samples)
}
