//! Runs heapdiff and its agent on each OpenJDK from 8 on, with each collector and object layout. The JDKs are in a root
//! file system of Debian sid, because no other distribution has all of them. `cargo xtask jdks` starts itself again
//! inside of that root file system, with the workspace mounted at the same path.

mod cell;
mod recording;
mod root;
mod table;
mod unloading;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;

use crate::{run, tools};
use cell::Cell;
use table::Table;

/// The OpenJDK versions that Debian sid has.
const MAJORS: [u32; 8] = [8, 11, 17, 21, 25, 26, 27, 28];
/// The versions that `--short` tests, because other measurements do not cover them.
const SHORT: [u32; 3] = [26, 27, 28];

/// The file of the full table, in the folder `jdks` of the target folder.
const TABLE: &str = "table.md";

/// Options of `cargo xtask jdks`.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Root file system with the JDKs, which is made if it does not exist [default: target/jdks/root]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Debian mirror [default: from the configuration of apt]
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Test only JDK 26, 27 and 28 with G1, a few rounds each. Do nothing if the root file system does not exist
    #[arg(long)]
    short: bool,
    /// Test only JDKs of this major version; may be repeated
    #[arg(long, value_name = "MAJOR")]
    jdk: Vec<u32>,
    /// Test only this collector, such as G1; may be repeated
    #[arg(long, value_name = "NAME")]
    collector: Vec<String>,
    /// Number of rounds for each JVM without -XX options that change the object layout; each round attaches the agent
    /// to the busy JVM, takes a dump, and detaches the agent [default: 50]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Number of classes that are loaded and unloaded [default: 100000 on JDK 26 and later, 5000 on older JDKs]
    #[arg(long, value_name = "N")]
    classes: Option<u32>,
    /// Copy the full table, target/jdks/table.md, to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    tested: run::Tested,
    /// Run the tests, because this process already runs inside of the root file system
    #[arg(long, hide = true)]
    inside: bool,
}

impl Options {
    pub(crate) fn short() -> Self {
        Self {
            short: true,
            ..Self::default()
        }
    }

    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.short { 3 } else { 50 })
    }

    /// Returns the number of classes to unload. If the user gave no number, it is 100,000 for JDK 26 and later, which
    /// free method ids, and 5,000 for older JDKs. With `--short`, the default is 2,000.
    fn classes(&self, major: u32) -> u32 {
        let usual = match major {
            26.. if !self.short => 100_000,
            _ if self.short => 2_000,
            _ => 5_000,
        };
        self.classes.unwrap_or(usual)
    }

    fn is_wanted(&self, cell: &Cell) -> bool {
        let is_named = |name: &String| name.eq_ignore_ascii_case(cell.collector);
        match self.short {
            true => cell.collector == "G1" && cell.is_usual_layout(),
            false => self.collector.is_empty() || self.collector.iter().any(is_named),
        }
    }
}

/// The tested programs, and a folder for temporary files.
#[derive(Debug)]
struct Tools {
    heapdiff: PathBuf,
    agent: PathBuf,
    scratch: PathBuf,
}

/// Creates the root file system if necessary, and runs the test matrix in it.
pub(crate) fn jdks(options: &Options) -> Result<()> {
    if options.inside {
        return inside(options);
    }
    let home = run::target_dir().join("jdks");
    let root = options.root.clone().unwrap_or_else(|| home.join("root"));
    let root = std::path::absolute(root)?;
    if options.short && !root::is_complete(&root, &MAJORS) {
        println!(
            "the matrix of JDKs did not run, because {} has no JDKs: run `cargo xtask jdks` as root",
            root.display()
        );
        return Ok(());
    }
    if options.short && !tools::is_root() {
        println!("the matrix of JDKs did not run, because only root can change the root folder");
        return Ok(());
    }
    root::make(&root, &MAJORS, options.mirror.as_deref())?;
    let (heapdiff, agent) = options.tested.build_products(true)?;
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    let [heapdiff, agent] = [heapdiff, agent].map(std::path::absolute);
    let (heapdiff, agent) = (heapdiff?, agent?);
    let (workspace, target) = (run::root(), run::target_dir());
    let mut folders = vec![workspace.as_path(), &target];
    folders.extend(
        [&heapdiff, &agent]
            .into_iter()
            .filter_map(|file| file.parent()),
    );
    let mut command = root::enter(&root, &folders)?;
    command
        .arg(std::env::current_exe()?)
        .args(["jdks", "--inside"]);
    command
        .arg("--heapdiff")
        .arg(heapdiff)
        .arg("--agent")
        .arg(agent);
    if options.short {
        command.arg("--short");
    }
    for (name, numbers) in [("--rounds", options.rounds), ("--classes", options.classes)] {
        if let Some(number) = numbers {
            command.args([name, &number.to_string()]);
        }
    }
    for major in &options.jdk {
        command.args(["--jdk", &major.to_string()]);
    }
    for name in &options.collector {
        command.args(["--collector", name]);
    }
    let result = run::run(&mut command);
    if let Some(output) = &options.output {
        let table = home.join(TABLE);
        fs::copy(&table, output).with_context(|| output.display().to_string())?;
    }
    result
}

/// Runs the test matrix with the JDKs of this root file system.
fn inside(options: &Options) -> Result<()> {
    let (heapdiff, agent) = options.tested.build_products(true)?;
    let scratch = run::target_dir().join("jdks");
    let scratch = tempfile::tempdir_in(&scratch)?;
    let tools = Tools {
        heapdiff,
        agent,
        scratch: scratch.path().to_owned(),
    };
    let majors: &[u32] = match (&options.jdk[..], options.short) {
        ([], true) => &SHORT,
        ([], false) => &MAJORS,
        (given, _) => given,
    };
    let mut table = Table::default();
    for &major in majors {
        let jdk = Jdk::at(Path::new(&root::home(major)))?;
        for cell in cell::all(&jdk)
            .iter()
            .filter(|cell| options.is_wanted(cell))
        {
            let result = cell.run(&tools, options.rounds());
            table.add(&jdk, &cell.to_string(), &result);
        }
        if major >= 11 {
            let result = unloading::unload(&jdk, &tools, options.classes(major));
            table.add(&jdk, "classes unloaded", &result);
            let result = recording::join(&jdk, &tools);
            table.add(&jdk, "recording", &result);
        }
    }
    let text = table.text();
    println!("\n{text}");
    let file = run::target_dir().join("jdks").join(TABLE);
    fs::write(&file, &text).with_context(|| file.display().to_string())?;
    let failed = table.failures();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}
