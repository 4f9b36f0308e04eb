//! Checks that the workflows for continuous integration can be parsed. Runs all steps of the action and of the
//! workflows in the documentation.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use crate::support::testdata;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn parse(name: &str, text: &str) -> Yaml {
    let documents = YamlLoader::load_from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(documents.len(), 1, "{name}");
    documents.into_iter().next().expect("a document")
}

/// Returns the workflows in docs/ci.md: one for GitHub, and steps for any server.
fn documented() -> Vec<Yaml> {
    let page = text("docs/ci.md");
    let blocks = page.split("```yaml\n").skip(1);
    let found: Vec<Yaml> = blocks
        .map(|block| parse("docs/ci.md", block.split("```").next().expect("a block")))
        .collect();
    assert_eq!(found.len(), 2);
    found
}

/// Returns all steps of a workflow or an action, or of a plain list of steps.
fn steps(of: &Yaml) -> Vec<&Yaml> {
    let lists = match &of["jobs"] {
        Yaml::Hash(jobs) => jobs.values().map(|job| &job["steps"]).collect(),
        _ => vec![&of["steps"], &of["runs"]["steps"]],
    };
    let steps = lists.into_iter().filter_map(Yaml::as_vec).flatten();
    let steps: Vec<&Yaml> = steps.collect();
    assert!(!steps.is_empty(), "no steps in {of:?}");
    steps
}

/// Returns the entries of a YAML mapping. All keys and values must be strings.
fn pairs(of: &Yaml) -> impl Iterator<Item = (&str, &str)> {
    let entries = of.as_hash().into_iter().flatten();
    entries.map(|(key, value)| {
        let value = value
            .as_str()
            .unwrap_or_else(|| panic!("{key:?} is no text"));
        (key.as_str().expect("a name"), value)
    })
}

/// A CI server with a checked-out project. The project's build writes two given dumps.
struct Server {
    home: tempfile::TempDir,
    /// System and processor, as GitHub names them.
    runner: (&'static str, &'static str),
}

impl Server {
    fn new(dumps: [&str; 2]) -> Self {
        let server = Self {
            home: tempfile::tempdir().expect("a folder"),
            runner: ("Linux", "X64"),
        };
        for folder in ["project/ci", "bin", "temp", "release/heapdiff-0.2.0/bin"] {
            fs::create_dir_all(server.at(folder)).expect("a folder");
        }
        let [before, after] = dumps.map(|name| testdata().join(name).display().to_string());
        let work = format!("#!/bin/sh\ncp {before} before.hprof\ncp {after} after.hprof\n");
        server.script("project/ci/soak.sh", &work);
        let known = "holder Orders.o*\nclass com.acme.Gone\n";
        fs::write(server.at("project/known-growth.txt"), known).expect("rules");
        // The files of a release, and a `curl` that copies these files instead of downloading them.
        let program = format!(
            "#!/bin/sh\nexec '{}' \"$@\"\n",
            env!("CARGO_BIN_EXE_heapdiff")
        );
        server.script("release/heapdiff-0.2.0/bin/heapdiff", &program);
        server.sh(
            "cd release && tar -czf heapdiff-x86_64-linux.tar.gz heapdiff-0.2.0 &&
             for name in aarch64-linux x86_64-macos aarch64-macos; do
                 cp heapdiff-x86_64-linux.tar.gz heapdiff-$name.tar.gz
             done",
        );
        // In the archive for Windows, the program is directly in the top folder, not in `bin`.
        let zip = fs::File::create(server.at("release/heapdiff-x86_64-windows.zip"));
        let mut zip = zip::ZipWriter::new(zip.expect("a file"));
        let name = "heapdiff-0.2.0-x86_64-windows/heapdiff.exe";
        let options = zip::write::SimpleFileOptions::default().unix_permissions(0o755);
        zip.start_file(name, options).expect("an entry");
        std::io::Write::write_all(&mut zip, program.as_bytes()).expect("a written entry");
        zip.finish().expect("an archive");
        server.sh("cd release && sha256sum *.gz *.zip > SHA256SUMS");
        let curl = r#"#!/bin/sh
            out=/dev/stdout
            while [ $# -gt 0 ]; do
                case "$1" in
                    -o) out=$2; shift ;;
                    --retry) shift ;;
                    https://github.com/heapdiff/heapdiff/releases/*) name=${1##*/}; echo "$1" >> "$RELEASE/asked" ;;
                esac
                shift
            done
            cat "$RELEASE/$name" > "$out""#;
        server.script("bin/curl", curl);
        server
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn script(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).expect("a script");
        self.sh(&format!("chmod +x {name}"));
    }

    fn sh(&self, script: &str) {
        let done = Command::new("sh")
            .args(["-c", script])
            .current_dir(self.home.path())
            .status();
        assert!(done.expect("a shell").success(), "{script}");
    }

    /// Runs the steps as a CI server does. After a step fails, runs only steps with `if: always()`. Returns the name of
    /// the first failed step as the error.
    fn run(&self, steps: &[&Yaml]) -> Result<(), String> {
        let mut failed = Ok(());
        for step in steps {
            let always = step["if"].as_str() == Some("always()");
            if failed.is_err() && !always {
                continue;
            }
            let done = match (step["run"].as_str(), step["uses"].as_str()) {
                (Some(script), None) => self.execute(step, script, &HashMap::new()),
                (None, Some(action)) if action.starts_with("heapdiff/heapdiff@v") => {
                    self.act(&step["with"])
                }
                (None, Some(other)) if other.starts_with("actions/") => Ok(()),
                what => panic!("{what:?}"),
            };
            failed = failed.and(done);
        }
        failed
    }

    /// Runs the action of this repository with the given inputs.
    fn act(&self, with: &Yaml) -> Result<(), String> {
        let action = parse("action.yml", &text("action.yml"));
        let known = action["inputs"].as_hash().expect("inputs");
        let mut inputs: HashMap<&str, &str> = known
            .iter()
            .map(|(name, input)| {
                let default = input["default"].as_str().expect("a default");
                (name.as_str().expect("a name"), default)
            })
            .collect();
        for (name, value) in pairs(with) {
            assert!(inputs.insert(name, value).is_some(), "no input {name}");
        }
        for step in steps(&action) {
            self.execute(step, step["run"].as_str().expect("a script"), &inputs)?;
        }
        Ok(())
    }

    fn execute(
        &self,
        step: &Yaml,
        script: &str,
        inputs: &HashMap<&str, &str>,
    ) -> Result<(), String> {
        let added = fs::read_to_string(self.at("path")).unwrap_or_default();
        let before = env::var_os("PATH").expect("a path");
        let path = added
            .lines()
            .map(PathBuf::from)
            .chain([self.at("bin")])
            .chain(env::split_paths(&before));
        let mut shell = Command::new("bash");
        shell
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.at("project"))
            .env("PATH", env::join_paths(path).expect("a path"))
            .env("RELEASE", self.at("release"))
            .env("RUNNER_TEMP", self.at("temp"))
            .env("RUNNER_OS", self.runner.0)
            .env("RUNNER_ARCH", self.runner.1)
            .env("GITHUB_PATH", self.at("path"))
            .env("GITHUB_STEP_SUMMARY", self.at("summary.md"))
            .env_remove("HEAPDIFF_AGENT");
        for (name, value) in pairs(&step["env"]) {
            let input = value
                .strip_prefix("${{ inputs.")
                .and_then(|v| v.strip_suffix(" }}"));
            let input = input.unwrap_or_else(|| panic!("{value} is not known here"));
            shell.env(name, inputs[input]);
        }
        let done = shell.output().expect("a shell");
        let name = step["name"].as_str().expect("a name").to_owned();
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        match done.status.code() {
            Some(0) => Ok(()),
            Some(1) if errors.contains("gate tripped") => Err(name),
            Some(3) => Err(format!("{name}: not decided")),
            code => panic!("{name} ended with {code:?}: {errors}"),
        }
    }
}

#[test]
fn workflows_parse() {
    for name in [
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        "action.yml",
    ] {
        let workflow = parse(name, &text(name));
        for step in steps(&workflow) {
            let is_step = step["run"].as_str().is_some() != step["uses"].as_str().is_some();
            assert!(is_step, "{name}: {step:?}");
        }
        // If a value from outside were inserted into a script, it could inject commands.
        for script in steps(&workflow)
            .iter()
            .filter_map(|step| step["run"].as_str())
        {
            assert!(!script.contains("${{"), "{name}: {script}");
        }
    }
    let ci = parse("ci.yml", &text(".github/workflows/ci.yml"));
    assert!(
        steps(&ci)
            .iter()
            .any(|step| step["run"].as_str() == Some(".ci/run"))
    );
}

#[test]
fn the_documented_workflows_run() {
    for workflow in documented() {
        let steps = steps(&workflow);
        let files = |server: &Server| {
            for file in ["growth.xml", "growth.html"] {
                assert!(server.at("project").join(file).is_file(), "{file}");
            }
            let summary = [server.at("summary.md"), server.at("project/growth.md")];
            let summary = summary
                .iter()
                .find_map(|path| fs::read_to_string(path).ok());
            assert!(summary.expect("a summary").starts_with("## Heap growth"));
        };
        let server = Server::new(["sampled-before.hprof.gz", "sampled-after.hprof.gz"]);
        assert_eq!(server.run(&steps), Ok(()), "growth that is known");
        files(&server);
        let server = Server::new(["before.hprof.gz", "after.hprof.gz"]);
        let failed = server.run(&steps).expect_err("a leak");
        assert!(failed.starts_with("Compare"), "{failed}");
        files(&server);
    }
}

#[test]
fn the_action_compares_two_programs_on_request() {
    let inputs = "before: before.hprof\nafter: after.hprof\n";
    for (more, says) in [
        ("", "Compare the dumps: not decided"),
        ("allow-partial: \"true\"", "Compare the dumps"),
    ] {
        let server = Server::new(["before.hprof.gz", "sampled-after.hprof.gz"]);
        server.sh("cd project && ci/soak.sh");
        let inputs = parse("inputs", &format!("{inputs}{more}"));
        assert_eq!(server.act(&inputs), Err(says.to_owned()));
        let summary = fs::read_to_string(server.at("summary.md")).expect("a summary");
        assert!(summary.contains("**Warning:**"), "{summary}");
        for end in ["xml", "html", "md", "sarif"] {
            let report = server.at("project").join(format!("growth.{end}"));
            assert!(report.is_file(), "{}", report.display());
        }
        let annotations = fs::read_to_string(server.at("temp/heapdiff.annotations"));
        let annotations = annotations.expect("annotations");
        assert!(annotations.starts_with("::error title="), "{annotations}");
    }
}

#[test]
fn the_action_can_install_without_comparing() {
    let server = Server::new(["before.hprof.gz", "after.hprof.gz"]);
    assert_eq!(server.act(&Yaml::BadValue), Ok(()));
    let installed = server.at("temp/heapdiff/bin");
    assert!(installed.join("heapdiff").is_file());
    let path = fs::read_to_string(server.at("path")).expect("what is added to the path");
    assert_eq!(Path::new(path.trim_end()), installed);
}

#[test]
fn the_action_installs_the_file_for_its_runner() {
    for (system, processor, archive) in [
        ("Linux", "X64", "heapdiff-x86_64-linux.tar.gz"),
        ("Linux", "ARM64", "heapdiff-aarch64-linux.tar.gz"),
        ("macOS", "X64", "heapdiff-x86_64-macos.tar.gz"),
        ("macOS", "ARM64", "heapdiff-aarch64-macos.tar.gz"),
        ("Windows", "X64", "heapdiff-x86_64-windows.zip"),
        ("Windows", "ARM64", "heapdiff-x86_64-windows.zip"),
    ] {
        let mut server = Server::new(["before.hprof.gz", "after.hprof.gz"]);
        server.runner = (system, processor);
        assert_eq!(server.act(&parse("inputs", "version: 0.2.0")), Ok(()));
        let asked = fs::read_to_string(server.at("release/asked")).expect("downloads");
        let releases = "https://github.com/heapdiff/heapdiff/releases/download/v0.2.0";
        assert_eq!(
            asked,
            format!("{releases}/{archive}\n{releases}/SHA256SUMS\n")
        );
        let end = if system == "Windows" { ".exe" } else { "" };
        let program = server.at(&format!("temp/heapdiff/bin/heapdiff{end}"));
        assert!(program.is_file(), "{}", program.display());
    }
}

/// Runs the scripts of the job that publishes a release. A stub of the program `gh` records its arguments.
#[test]
fn tags_make_releases_and_pre_releases() {
    for (tag, kind, deb) in [
        ("v0.2.0", "--latest", "heapdiff_0.2.0_amd64.deb"),
        (
            "v0.2.0-rc.1",
            "--prerelease",
            "heapdiff_0.2.0~rc.1_amd64.deb",
        ),
    ] {
        let server = Server::new(["before.hprof.gz", "after.hprof.gz"]);
        fs::create_dir_all(server.at("project/packages")).expect("a folder");
        let version = tag.trim_start_matches('v');
        let ends = [
            "x86_64-linux.tar.gz",
            "aarch64-macos.tar.gz",
            "x86_64-windows.zip",
        ];
        let named = ends.map(|end| format!("heapdiff-{version}-{end}"));
        for name in named.iter().map(String::as_str).chain([deb, "SHA256SUMS"]) {
            fs::write(server.at("project/packages").join(name), name).expect("a file");
        }
        server.script("bin/gh", "#!/bin/sh\necho \"$@\" > ../gh\n");
        let workflow = parse("release.yml", &text(".github/workflows/release.yml"));
        for step in steps(&workflow["jobs"]["release"]) {
            let Some(script) = step["run"].as_str() else {
                continue;
            };
            let folder = step["working-directory"].as_str().unwrap_or(".");
            let script = format!("export TAG={tag} GITHUB_REPOSITORY=a/b; cd {folder}\n{script}");
            let step = parse(
                "step",
                &format!("name: {}", step["name"].as_str().expect("a name")),
            );
            assert_eq!(server.execute(&step, &script, &HashMap::new()), Ok(()));
        }
        let arguments = fs::read_to_string(server.at("gh")).expect("arguments");
        assert!(
            arguments.contains(&format!("release create {tag} ")),
            "{arguments}"
        );
        let other = ["--latest", "--prerelease"]
            .into_iter()
            .filter(|&other| other != kind);
        assert!(arguments.contains(kind), "{arguments}");
        assert!(
            other.into_iter().all(|other| !arguments.contains(other)),
            "{arguments}"
        );
        let sums = fs::read_to_string(server.at("project/packages/SHA256SUMS")).expect("sums");
        let listed: Vec<&str> = sums
            .lines()
            .filter_map(|line| line.split("  ").nth(1))
            .collect();
        let mut expected: Vec<String> = ends.iter().map(|end| format!("heapdiff-{end}")).collect();
        expected.extend(named.into_iter().chain([deb.to_owned()]));
        expected.sort();
        assert_eq!(listed.len(), expected.len(), "{sums}");
        for name in expected {
            assert!(listed.contains(&&*name), "{name}: {sums}");
        }
    }
}
