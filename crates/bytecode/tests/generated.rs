//! Rewrites generated methods with this crate and with ASM. Both versions must have the same instructions, tables,
//! frames, results and counts.
//!
//! The test uses the copy of ASM inside JDKs before 24, or the jars in the folder that `HEAPDIFF_ASM` names.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapdiff_bytecode::{Hooks, Kind, Name, Site, Sites, rewrite};
use testdata::jvm::{Jdk, Launch};
use testdata::programs;

/// Default number of generated methods. The environment variable `HEAPDIFF_GENERATED` overrides this number.
const METHODS: usize = 200;
const PATIENCE: Duration = Duration::from_secs(600);

const HOOKS: Hooks<'static> = Hooks {
    owner: "test/lang/Hits",
    object: "object",
    array: "array",
    level: "level",
};

/// Gives consecutive numbers to sites, but skips every ninth site.
struct Most(i32);

impl Sites for Most {
    fn number(&mut self, _: Name<'_>, _: &Site<'_>) -> Option<i32> {
        self.0 += 1;
        (self.0 % 9 != 0).then_some(self.0)
    }
}

fn setting(name: &str, otherwise: usize) -> usize {
    env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

/// Runs programs that use ASM.
struct Asm {
    jdk: Jdk,
    /// The jars of ASM, or `None` for the copy inside the JDK.
    jars: Option<PathBuf>,
}

impl Asm {
    fn found(jdks: &[Jdk]) -> Self {
        let jars = env::var_os("HEAPDIFF_ASM").map(PathBuf::from);
        let has = |jdk: &&Jdk| jars.is_some() || jdk.major() < 24;
        let jdk = jdks.iter().find(has).cloned();
        let jdk = jdk.expect("a JDK from 17 to 23, or ASM's jars in the folder HEAPDIFF_ASM");
        Asm { jdk, jars }
    }

    /// Runs a program and returns the lines that it prints.
    fn run(&self, program: &str, scratch: &Path, args: &[&str]) -> Vec<String> {
        let source = programs::bytecode(program);
        let launch = match &self.jars {
            Some(jars) => {
                Launch::source(&self.jdk, source).flags(["-cp", &format!("{}/*", jars.display())])
            }
            None => {
                let text = fs::read_to_string(source).unwrap();
                let own = scratch.join(program);
                fs::write(&own, text.replace("org.objectweb.asm", INSIDE)).unwrap();
                let exported = ["", ".tree"].map(|package| {
                    format!("--add-exports=java.base/{INSIDE}{package}=ALL-UNNAMED")
                });
                Launch::source(&self.jdk, own).flags(exported)
            }
        };
        let launch = args.iter().fold(launch.timeout(PATIENCE), Launch::arg);
        launch.start().unwrap().lines_until_ready().unwrap()
    }
}

const INSIDE: &str = "jdk.internal.org.objectweb.asm";

/// The format in which the test and the Java programs exchange numbers, strings and files. Each string or file is
/// preceded by its length.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    fn int(&mut self, number: usize) {
        self.0.extend(u32::try_from(number).unwrap().to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.0
            .extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        self.0.extend(text.as_bytes());
    }

    fn file(&mut self, bytes: &[u8]) {
        self.int(bytes.len());
        self.0.extend(bytes);
    }
}

/// Rewrites the classes in a file. Returns the rewritten classes, and the number of methods that stayed unchanged.
fn rewritten(generated: &[u8], numbers: &mut Most) -> (Data, usize) {
    let mut rest = generated;
    let mut take = |count: usize| {
        let (taken, after) = rest.split_at(count);
        rest = after;
        (taken, rest.is_empty())
    };
    let mut out = Data::default();
    let mut all_left = 0;
    loop {
        let length = u16::from_be_bytes(take(2).0.try_into().unwrap());
        let name = str::from_utf8(take(length.into()).0).unwrap();
        let length = u32::from_be_bytes(take(4).0.try_into().unwrap());
        let (bytes, last) = take(usize::try_from(length).unwrap());
        let rewritten = rewrite(bytes, &HOOKS, numbers).unwrap();
        assert!(rewritten.dropped.is_empty(), "{name}");
        out.text(name);
        out.file(bytes);
        out.file(rewritten.bytes.as_deref().unwrap_or(bytes));
        out.int(rewritten.sites.len());
        let places = places(bytes);
        for counted in &rewritten.sites {
            let site = &counted.site;
            let method = format!("{}{}", site.method, site.descriptor);
            let place = places(&method, site.bytecode);
            let level = match site.kind {
                Kind::Level(level) => level,
                _ => 0,
            };
            out.text(&method);
            out.int(place << 8 | usize::from(level));
            out.int(usize::try_from(counted.number).unwrap());
        }
        out.int(rewritten.left_alone.len());
        for left in &rewritten.left_alone {
            out.text(&format!("{}{}", left.method, left.descriptor));
            out.text(&left.reason.to_string());
        }
        all_left += rewritten.left_alone.len();
        if last {
            return (out, all_left);
        }
    }
}

/// Returns a function that maps the offset of an allocation to the index of the allocation within its method.
fn places(class: &[u8]) -> impl Fn(&str, u16) -> usize {
    struct All(Vec<(String, u16)>);
    impl Sites for All {
        fn number(&mut self, _: Name<'_>, site: &Site<'_>) -> Option<i32> {
            let of = (format!("{}{}", site.method, site.descriptor), site.bytecode);
            if self.0.last() != Some(&of) {
                self.0.push(of);
            }
            None
        }
    }
    let mut all = All(Vec::new());
    rewrite(class, &HOOKS, &mut all).unwrap();
    move |method, bytecode| {
        let mut of = all.0.iter().filter(|(of, _)| of == method);
        of.position(|&(_, at)| at == bytecode).unwrap()
    }
}

#[test]
fn generated_methods_equal_those_of_asm() {
    let jdks = Jdk::all_for_scenarios();
    let asm = Asm::found(&jdks);
    let methods = setting("HEAPDIFF_GENERATED", METHODS);
    let seed = setting("HEAPDIFF_SEED", 1);
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str| scratch.path().join(name).display().to_string();
    let (generated, pairs, all) = (file("generated"), file("pairs"), file("all"));
    let (seed, count) = (seed.to_string(), methods.to_string());
    asm.run(
        "Generated.java",
        scratch.path(),
        &[&seed, &count, &generated],
    );
    let mut numbers = Most(0);
    let (data, left) = rewritten(&fs::read(&generated).unwrap(), &mut numbers);
    fs::write(&pairs, &data.0).unwrap();
    println!(
        "seed {seed}: {methods} methods, {} sites, {left} left alone",
        numbers.0
    );
    assert!(usize::try_from(numbers.0).unwrap() > 10 * methods);

    let lines = asm.run(
        "Reference.java",
        scratch.path(),
        &[&pairs, &all, HOOKS.owner],
    );
    let [compared, long, far, deep, wrong] = figures(&lines, "COMPARED");
    println!("{compared} compared, left alone: {long} too long, {far} jumps, {deep} stacks");
    assert_eq!(wrong, 0, "{lines:#?}");
    assert!(compared >= methods && long + far + deep == left);

    for jdk in &jdks {
        let classes = jdk.compile(&programs::bytecode("Runs.java")).unwrap();
        let hits = jdk.compile(&programs::bytecode("Hits.java")).unwrap();
        let mut java = Launch::class(jdk, classes, "Runs")
            .timeout(PATIENCE)
            .flags(["-Xmx2g", "-XX:+UnlockDiagnosticVMOptions"])
            .flags(["-XX:+BytecodeVerificationRemote"])
            .arg(&all)
            .arg(hits.join("test/lang/Hits.class"))
            .start()
            .unwrap();
        let lines = java.lines_until_ready().unwrap();
        let [run, calls, thrown, sites, objects, wrong] = figures(&lines, "RAN");
        println!(
            "JDK {}: {run} methods, {calls} calls, {thrown} threw, {sites} sites counted {objects}",
            jdk.version()
        );
        assert_eq!(wrong, 0, "{} {lines:#?}", jdk.version());
        assert_eq!(run, methods);
        assert!(thrown > 0 && sites > methods, "{lines:?}");
    }
}

/// Finds the line that begins with `word`, and returns the numbers after `word`.
fn figures<const N: usize>(lines: &[String], word: &str) -> [usize; N] {
    let line = lines.iter().find_map(|line| line.strip_prefix(word));
    let figures = line.unwrap().split_whitespace().map(|n| n.parse().unwrap());
    figures.collect::<Vec<_>>().try_into().unwrap()
}
