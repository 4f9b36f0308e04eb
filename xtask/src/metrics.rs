//! Reads heapdiff's metrics with another implementation: the parsers of Prometheus's Python client, for OpenMetrics and
//! for the older text format.

use std::process::Command;

use anyhow::Result;

use heapdiff_lab::run::{Products, root, run, target_dir};
use heapdiff_lab::tools;

const CHECK: &str = include_str!("metrics/check.py");

/// Writes metrics of the dumps in testdata and checks them with the client.
pub(crate) fn metrics() -> Result<()> {
    let python = tools::ensure_python(&target_dir().join("prometheus"), &["prometheus-client"])?;
    let program = Products::build_test_profile()?.heapdiff();
    let dumps = ["sampled-before.hprof.gz", "sampled-after.hprof.gz"];
    let dumps = dumps.map(|name| root().join("testdata").join(name));
    for dumps in [&dumps[..], &dumps[1..]] {
        run(Command::new(&python)
            .args(["-c", CHECK])
            .arg(&program)
            .args(dumps))?;
    }
    Ok(())
}
