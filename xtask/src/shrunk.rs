//! Rebuilds the program in testdata whose names ProGuard shortened, and the mapping to the original names.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::languages::compiler;
use heapdiff_lab::{java, run};

/// The Maven group, artifact and version of ProGuard, and its main class.
const PROGUARD: [&str; 4] = [
    "com.guardsquare",
    "proguard-base",
    "7.7.0",
    "proguard.ProGuard",
];
const LIBRARY: &str = "<java.home>/jmods/java.base.jmod(!**.jar;!module-info.class)";

/// Compiles `testdata/shrunk/Shop.java`, lets ProGuard shorten its names, and writes `shop.jar` and `mapping.txt`
/// beside it.
pub(crate) fn shrunk() -> Result<()> {
    let folder = run::root().join("testdata/shrunk");
    let jdk = java::ensure_jdk()?;
    let scratch = run::target_dir().join("shrunk");
    let classes = scratch.join("classes");
    if classes.exists() {
        fs::remove_dir_all(&classes)
            .with_context(|| format!("cannot empty {}", classes.display()))?;
    }
    fs::create_dir_all(&classes).with_context(|| format!("cannot create {}", classes.display()))?;
    let proguard = compiler(&scratch.join("proguard"), PROGUARD)?;
    run::run(
        Command::new(jdk.home().join("bin/javac"))
            .args(["--release", "11", "-d"])
            .arg(&classes)
            .arg(folder.join("Shop.java")),
    )?;
    run::run(
        Command::new(jdk.java())
            .args(["-cp", &format!("{proguard}/*"), PROGUARD[3]])
            .arg(format!("@{}", folder.join("shop.pro").display()))
            .args(["-libraryjars", LIBRARY, "-injars"])
            .arg(&classes)
            .arg("-outjars")
            .arg(folder.join("shop.jar"))
            .arg("-printmapping")
            .arg(folder.join("mapping.txt")),
    )
}
