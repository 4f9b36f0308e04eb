//! Generates the traces of several hosts, exports the traces, and ranks allocation sites with a Spark job on a local
//! cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use heapdiff_lab::java;
use heapdiff_lab::run::{self, Products, command_text};
use heapdiff_lab::tools::ensure_python;

/// The PySpark version that the job is tested with.
const PYSPARK: &str = "pyspark==4.0.1";
/// A Spark cluster of two executors in separate processes, each with one CPU core and one gigabyte.
const CLUSTER: &str = "local-cluster[2,1,1024]";

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Leak {
    service: String,
    class: String,
    hosts: u64,
    leaking_hosts: u64,
    growth_bytes: i64,
}

/// Generates traces of eight hosts, four of which leak, and ranks them.
pub(crate) fn fleet() -> Result<()> {
    let jdk = java::ensure_jdk()?;
    let python = ensure_python(&run::target_dir().join("spark"), &[PYSPARK])?;
    let built = Products::build_test_profile()?;
    let heapdiff = built.heapdiff();
    let folder = tempfile::tempdir()?;
    let mut expected = traces(&built.example("traces"), folder.path())?;
    expected.sort_by_key(|leak| -leak.growth_bytes);

    let fleet = folder.path().join("fleet");
    let mut inputs: Vec<PathBuf> = fs::read_dir(folder.path())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    inputs.retain(|path| path.extension().is_some_and(|e| e == "db"));
    inputs.sort();
    // The first input is loaded twice. The second load must replace the first, so that nothing is counted twice.
    for input in inputs.iter().chain(inputs.first()) {
        let name = input.file_stem().unwrap_or_default().to_string_lossy();
        let (service, host) = name.split_once('-').context("SERVICE-HOST.db")?;
        run::run(
            Command::new(&heapdiff)
                .arg("fleet")
                .arg(input)
                .args(["--service", service, "--host", host, "-o"])
                .arg(&fleet),
        )?;
    }

    let ranking = folder.path().join("ranking.json");
    let submit = format!(
        "--master {CLUSTER} --conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1 \
         --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=4 pyspark-shell"
    );
    let mut job = Command::new(&python);
    job.arg(run::root().join("crates/fleet/rank_sites.py"))
        .arg(&fleet)
        .arg("--json")
        .arg(&ranking)
        .current_dir(folder.path())
        .env("JAVA_HOME", jdk.home())
        .env("PYSPARK_SUBMIT_ARGS", submit)
        .env("PYSPARK_PYTHON", &python)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("SPARK_HOME", spark_home(&python)?);
    run::run(&mut job)?;
    let found: Vec<Leak> = fs::read_to_string(&ranking)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    ensure!(
        found == expected,
        "the job found {found:#?}, but these were expected: {expected:#?}"
    );
    println!("the job found all {} leaks and nothing else", found.len());
    Ok(())
}

/// Writes the traces, and returns the leaks that they contain.
fn traces(make: &Path, folder: &Path) -> Result<Vec<Leak>> {
    let mut make = Command::new(make);
    make.arg(folder);
    let output = make.output()?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        command_text(&make),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)?
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

fn spark_home(python: &Path) -> Result<PathBuf> {
    let find = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";
    let output = Command::new(python).args(["-c", find]).output()?;
    ensure!(output.status.success(), "pyspark cannot be imported");
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}
