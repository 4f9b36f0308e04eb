//! What CI runs, in this order.

use anyhow::Result;

use crate::{
    accuracy, bench, browser, coverage, fuzz, install, java, junit, metrics, overhead, package,
    parquet, run, tools,
};

/// Everything that has to pass before a change is merged.
pub(crate) fn ci() -> Result<()> {
    run::run(run::cargo().args(["fmt", "--all", "--check"]))?;
    // The release profile shares build scripts and macros with the build of the tests.
    run::run(
        run::cargo()
            .args([
                "clippy",
                "--workspace",
                "--all-targets",
                "--locked",
                "--release",
            ])
            .args(["--", "-D", "warnings"]),
    )?;
    run::run(
        run::cargo()
            .args(["doc", "--workspace", "--no-deps", "--locked", "--release"])
            .args(["--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    // Advisories are left out: they need the advisory database, a git clone from GitHub,
    // which not every machine that runs this can reach.
    run::run(run::cargo().args(["deny", "check", "licenses", "bans", "sources"]))?;
    test()?;
    junit::junit(&junit::Options::default())?;
    browser::browser(&browser::Options::plain())?;
    parquet::parquet()?;
    metrics::metrics()?;
    fuzz::fuzz(&fuzz::Options::smoke())?;
    bench::bench(&bench::Options::smoke())?;
    overhead::overhead(&overhead::Options::smoke())?;
    accuracy::accuracy(&accuracy::Options::smoke())?;
    coverage::coverage(&coverage::Options::smoke())?;
    install::smoke()?;
    package::package(&package::Options { verify: false })
}

/// All tests. Optimised, since some of them read heaps of millions of objects.
pub(crate) fn test() -> Result<()> {
    let home = java::ensure_jdk()?;
    tools::ensure_readers()?;
    let mut tests = run::cargo();
    tests.args(["test", "--workspace", "--release", "--locked"]);
    // Most tests wait for JVMs a good part of their time.
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tests.env("RUST_TEST_THREADS", (2 * cores).to_string());
    // `cargo xtask fuzz` has longer runs.
    tests.env("FUZZ_SECONDS", "1");
    run::run(tests.env("JAVA_HOME", home.home()))
}

/// The dumps and the recording that are kept in testdata, made again.
pub(crate) fn dumps() -> Result<()> {
    java::ensure_jdk()?;
    let library = run::Products::build()?.agent();
    let folder = run::root().join("testdata");
    let mut files = testdata::regenerate_dumps(&folder)?;
    files.extend(testdata::make_sampled_dumps(&folder, &library, 9)?);
    files.push(testdata::make_recording(&folder)?);
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}
