//! Reads exported tables with another implementation of Parquet. The sums over these tables must equal the sums in the
//! report of `histo`.

use std::process::Command;

use anyhow::Result;

use heapdiff_lab::run::{Products, root, run, target_dir};
use heapdiff_lab::tools;

const CHECK: &str = include_str!("parquet/check.py");

/// Exports the dumps in testdata and checks them with pyarrow.
pub(crate) fn parquet() -> Result<()> {
    let python = tools::ensure_python(&target_dir().join("pyarrow"), &["pyarrow"])?;
    let program = Products::build_test_profile()?.heapdiff();
    for name in ["after.hprof.gz", "sampled-after.hprof.gz"] {
        let dump = root().join("testdata").join(name);
        let folder = tempfile::tempdir()?;
        run(Command::new(&program)
            .args(["export", "-q", "--label", "service=shop", "-o"])
            .arg(folder.path())
            .arg(&dump))?;
        run(Command::new(&python)
            .args(["-c", CHECK])
            .arg(&program)
            .arg(&dump)
            .arg(folder.path()))?;
    }
    Ok(())
}
