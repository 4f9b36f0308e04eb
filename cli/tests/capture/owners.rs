//! Tests `heapdiff owners` on dumps of a program with plugins whose private and shared bytes are known.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{jdks, run};
use testdata::jvm::Jdk;
use testdata::programs;

/// Size of the header of an array in bytes, with compressed class pointers.
const HEADER: u64 = 16;

/// Runs the program, which writes a dump. Plugin 7 keeps `more` additional numbers.
fn dump(jdk: &Jdk, folder: &Path, more: u64) -> PathBuf {
    let classes = ["Host.java", "Plugin.java"].map(|name| jdk.compile(&programs::owners(name)));
    let [host, plugin] = classes.map(|classes| classes.expect("classes"));
    let dump = folder.join(format!("{more}.hprof"));
    let done = Command::new(jdk.java())
        .args(["-Xmx64m", "-cp"])
        .arg(host)
        .arg("Host")
        .arg(plugin)
        .arg(&dump)
        .arg(more.to_string())
        .output()
        .expect("java");
    assert!(done.status.success(), "{done:?}");
    dump
}

fn report(args: &[&str]) -> Value {
    let args = [&["owners", "--format", "json"], args].concat();
    serde_json::from_str(&run(Path::new("/"), &args).well().stdout).expect("JSON")
}

/// Returns the bytes of `long[]` arrays of an owner in the last dump. `row` is the row of this owner in the report.
fn numbers(row: &Value) -> u64 {
    let classes = row["classes"].as_array().expect("classes");
    let own = classes.iter().filter(|class| class["class"] == "long[]");
    own.map(|class| class["bytes"].as_u64().expect("bytes"))
        .sum()
}

fn bytes(numbers: u64) -> u64 {
    HEADER + 8 * numbers
}

#[test]
fn plugins_have_their_private_and_shared_bytes() {
    for jdk in jdks().iter().filter(|jdk| jdk.major() >= 9) {
        let folder = tempfile::tempdir().expect("a folder");
        let dumps = [0, 50_000].map(|more| dump(jdk, folder.path(), more));
        let [before, after] = dumps.each_ref().map(|dump| dump.to_str().expect("a name"));
        let one = report(&[before]);
        assert_eq!(one["by"], "loader");
        let name = |number: u64| format!("plugin-{number} (URLClassLoader)");
        let owner = |report: &Value, name: &str| {
            let owners = report["owners"].as_array().expect("owners");
            let found = owners.iter().find(|row| row["owner"] == name);
            found.expect("an owner").clone()
        };
        let shared = one["shared"].as_array().expect("pairs");
        for plugin in 1..=20 {
            let row = owner(&one, &name(plugin));
            assert_eq!(numbers(&row), bytes(plugin * 1000), "{plugin}");
            if plugin > 1 {
                let pair = [name(plugin - 1), name(plugin)];
                let is_pair = |row: &&Value| {
                    let owners = row["owners"].as_array().expect("owners");
                    owners.len() == 2
                        && pair
                            .iter()
                            .all(|name| owners.contains(&name.as_str().into()))
                };
                let row = shared.iter().find(is_pair).expect("a pair");
                assert_eq!(numbers(row), bytes((plugin - 1) * 100), "{plugin}");
            }
        }
        let several = shared
            .iter()
            .find(|row| row["owners"] == Value::Array(Vec::new()));
        assert_eq!(numbers(several.expect("a row")), bytes(5000));
        let sum = |report: &Value, at: usize| -> u64 {
            let owners = report["owners"].as_array().expect("owners").iter();
            let owners: u64 = owners
                .map(|row| row["bytes"][at].as_u64().expect("bytes"))
                .sum();
            owners + report["shared_bytes"][at].as_u64().expect("bytes")
        };
        each_plugin_has_its_own_path(before);
        let two = report(&[before, after]);
        for at in [0, 1] {
            let reachable = two["snapshots"][at]["reachable_bytes"].as_u64();
            assert_eq!(Some(sum(&two, at)), reachable);
        }
        assert_eq!(
            two["owners"][0]["owner"],
            name(7),
            "the first owner grew most"
        );
        for (limit, fails) in [
            ("*=390KiB".to_owned(), true),
            (format!("{}=10%", name(7)), true),
            (format!("{}=10%", name(8)), false),
            ("*=1MiB".to_owned(), false),
        ] {
            let args = ["owners", before, after, "--fail-on-growth", &limit];
            let done = run(Path::new("/"), &args);
            assert_eq!(done.code, Some(i32::from(fails)), "{done:?}");
            let message = format!("{} grew by 390.6 KiB", name(7));
            assert_eq!(done.stderr.contains(&message), fails, "{done:?}");
        }
    }
}

/// All classes of plugins have the same name. Only the names of their loaders differ.
fn each_plugin_has_its_own_path(dump: &str) {
    let args = ["paths", dump, "Plugin", "--format", "json"];
    let report: Value =
        serde_json::from_str(&run(Path::new("/"), &args).well().stdout).expect("JSON");
    let lines = report["tree"].as_array().expect("lines").iter();
    let mut loaders: Vec<&str> = lines
        .filter(|line| line["class"] == "Plugin")
        .map(|line| line["loader"].as_str().expect("a loader"))
        .collect();
    loaders.sort_unstable();
    loaders.dedup();
    assert_eq!(loaders.len(), 20, "{report}");
    assert!(loaders.contains(&"plugin-20 (URLClassLoader)"));
}
