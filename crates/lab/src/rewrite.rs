//! Classes rewritten with a call before each allocation: those of published jars, loaded with full verification as they were and as
//! they are, and compared by the JDK's own class file API; those of the JDK's image; and methods generated to be extreme, beside
//! what ASM makes of them.

mod jars;
mod loaded;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{java, run};

/// What `cargo xtask rewrite` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Which parts; all if not given
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Only JDKs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Only this jar, without its version; may be repeated
    #[arg(long, value_name = "NAME")]
    jar: Vec<String>,
    /// Generated methods
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    methods: u32,
    /// What the first thousand of them are generated from, the next from the next number: the same give the same
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u32,
    /// Write the table of jars to this Markdown file too
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// All classes of published jars
    Jars,
    /// All classes of the JDKs' images
    Image,
    /// Generated methods, beside what ASM makes of them
    Generated,
}

const PARTS: [Part; 3] = [Part::Jars, Part::Image, Part::Generated];

/// Generated methods at a time, each time from the next seed.
const BATCH: u32 = 1000;

/// Runs the parts, and fails where a rewritten class is refused or differs.
pub(crate) fn rewrite(options: &Options) -> Result<()> {
    let jdks = java::jdks(&options.jdk)?;
    let parts = if options.parts.is_empty() {
        &PARTS[..]
    } else {
        &options.parts
    };
    let mut wrong = Vec::new();
    for part in parts {
        match part {
            Part::Jars => {
                let (page, faults) = jars::jars(&jdks, &options.jar)?;
                println!("\n{page}");
                if let Some(file) = &options.output {
                    std::fs::write(file, page).with_context(|| file.display().to_string())?;
                }
                wrong.extend(faults);
            }
            Part::Image => tests("real", &[("HEAPDIFF_ALL_CLASSES", "1".into())])?,
            Part::Generated => {
                // ASM's jars are among the others.
                let jars = std::path::absolute(jars::fetched()?)?;
                for batch in 0..options.methods.div_ceil(BATCH) {
                    let methods = BATCH.min(options.methods - batch * BATCH);
                    let settings = [
                        ("HEAPDIFF_ASM", jars.clone().into()),
                        ("HEAPDIFF_GENERATED", methods.to_string().into()),
                        (
                            "HEAPDIFF_SEED",
                            options.seed.wrapping_add(batch).to_string().into(),
                        ),
                    ];
                    tests("generated", &settings)?;
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The crate's own tests of this file, with more than the suite has them do.
fn tests(file: &str, settings: &[(&str, OsString)]) -> Result<()> {
    run::run(
        run::cargo()
            .args(["test", "--release", "--locked"])
            .args(["--package", "heapdiff-bytecode", "--test", file])
            .args(["--", "--nocapture"])
            .envs(settings.iter().map(|(name, value)| (name, value))),
    )
}
