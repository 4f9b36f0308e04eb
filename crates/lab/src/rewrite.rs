//! Tests the rewriting of classes, which inserts a call before each allocation. Classes of published jars are loaded
//! with full verification, in the original and in the rewritten form. The JDK's class file API compares both forms.
//! Classes of the JDK image are rewritten too. Methods with extreme properties are generated and rewritten, and the
//! result is compared with that of the library ASM.

mod jars;
mod loaded;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::{java, run};

/// Options of `cargo xtask rewrite`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Parts to run [default: all]
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Use only JDKs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Use only this jar (name without version); may be repeated
    #[arg(long, value_name = "NAME")]
    jar: Vec<String>,
    /// Number of methods to generate
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    methods: u32,
    /// Seed of the first thousand generated methods; each further thousand uses the next seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u32,
    /// Also write the table of jars to this Markdown file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Rewrite all classes of published jars
    Jars,
    /// Rewrite all classes of the JDK images
    Image,
    /// Rewrite generated methods, and compare with ASM
    Generated,
}

const PARTS: [Part; 3] = [Part::Jars, Part::Image, Part::Generated];

/// Number of methods that are generated from one seed. If more are requested, further methods use the next seeds.
const BATCH: u32 = 1000;

/// Runs the selected tests. Fails if a JVM rejects a rewritten class, or if a rewritten class differs from the original
/// in more than the inserted calls.
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
                // The fetched jars include the jars of ASM.
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

/// Runs a test file of the bytecode crate, with more classes or methods than in the normal test run.
fn tests(file: &str, settings: &[(&str, OsString)]) -> Result<()> {
    run::run(
        run::cargo()
            .args(["test", "--release", "--locked"])
            .args(["--package", "heapdiff-bytecode", "--test", file])
            .args(["--", "--nocapture"])
            .envs(settings.iter().map(|(name, value)| (name, value))),
    )
}
