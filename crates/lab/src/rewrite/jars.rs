//! The published jars, their classes, and the table of results.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use testdata::jvm::Jdk;
use zip::ZipArchive;

use super::loaded::{self, Class, Outcome};
use crate::{java, run};

/// A jar that `testdata/rewrite/pom.xml` names, and the compiler that produced its classes.
struct Jar {
    name: &'static str,
    about: &'static str,
}

const fn jar(name: &'static str, about: &'static str) -> Jar {
    Jar { name, about }
}

const JARS: [Jar; 41] = [
    jar("kotlin-stdlib", "Kotlin"),
    jar("kotlinx-coroutines-core-jvm", "Kotlin"),
    jar("kotlin-reflect", "Kotlin, shrunk by ProGuard"),
    jar(
        "kotlin-compiler-embeddable",
        "Kotlin and Java, shrunk by ProGuard, with renamed packages",
    ),
    jar("scala-library", "Scala 2"),
    jar("pekko-actor_2.13", "Scala 2"),
    jar("scala3-library_3", "Scala 3"),
    jar("cats-core_3", "Scala 3"),
    jar("groovy", "Java and Groovy"),
    jar("clojure", "Clojure"),
    jar("jruby-base", "Java, generated"),
    jar("jython-slim", "Java, generated"),
    jar("jcc", "Java, obfuscated"),
    jar("ojdbc8", "Java, partly obfuscated"),
    jar("guava", "Java"),
    jar("netty-common", "Java, with renamed packages"),
    jar("netty-handler", "Java"),
    jar("spring-core", "Java, with renamed packages"),
    jar("jackson-databind", "Java"),
    jar("hibernate-core", "Java"),
    jar(
        "byte-buddy",
        "Java, with renamed packages, for two Java versions",
    ),
    jar("h2", "Java"),
    jar("derby", "Java"),
    jar("tomcat-embed-core", "Java"),
    jar("lucene-core", "Java, multi-release jar"),
    jar("bcprov-jdk18on", "Java, multi-release jar, signed"),
    jar("asm", "Java, shrunk"),
    jar("protobuf-java", "Java, generated"),
    jar("caffeine", "Java, generated"),
    jar("rxjava", "Java"),
    jar("log4j-core", "Java, multi-release jar"),
    jar("log4j", "Java 1.4"),
    jar("gwt-user", "Java"),
    jar("closure-compiler", "Java, with renamed packages"),
    jar("proguard-base", "Java and Kotlin"),
    jar("fastutil", "Java, generated"),
    jar("lombok", "Java, class files with an unusual extension"),
    jar("ecj", "Java, compiled by Eclipse"),
    jar("aspectjweaver", "Java and AspectJ"),
    jar("xercesImpl", "Java 1.4"),
    jar("trove4j", "Java 5, generated"),
];

const HEAD: &str = "\
| jar | language and tools | classes | rewritten classes | counted sites | methods not rewritten | removed attributes | JDK | classes linked | classes with a missing dependency | rejected with and without rewriting | verdict changed by rewriting | methods compared | methods not read | methods that differ |
|---|---|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|
";

/// Returns the folder with the jars and all their dependencies.
pub(super) fn fetched() -> Result<PathBuf> {
    java::libraries(&run::root().join("testdata/rewrite"), "rewrite", None)
}

/// Rewrites and loads all jars. Returns the table and the errors.
pub(super) fn jars(jdks: &[Jdk], only: &[String]) -> Result<(String, Vec<String>)> {
    let mut all = files(&fetched()?)?;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    let mut chosen = Vec::new();
    for jar in &JARS {
        let file = find_jar(&all, jar.name)?.to_owned();
        if wanted(jar.name) {
            chosen.push((title(&file), jar.about.to_owned(), file.clone()));
        }
    }
    ensure!(
        !chosen.is_empty(),
        "there is no jar named {}",
        only.join(", ")
    );
    // If several jars contain a class, the JVM takes it from the first jar on the class path.
    all.sort();
    let mut page = HEAD.to_owned();
    let mut notes = String::new();
    let mut wrong = Vec::new();
    for (title, about, file) in &chosen {
        println!("==> {title}");
        let classes = classes(file)?;
        let outcome = loaded::outcome(jdks, title, &classes, &all)?;
        page += &rows(title, about, &outcome);
        for note in outcome.left_alone.iter().chain(&outcome.dropped) {
            writeln!(notes, "- {title}: {note}")?;
        }
        for note in &outcome.refused {
            writeln!(notes, "- {title}: {note}")?;
        }
        wrong.extend(outcome.wrong.iter().map(|w| format!("{title}: {w}")));
    }
    Ok((format!("{page}\n{notes}"), wrong))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ext| ext == "jar") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the jar with this name and any version.
fn find_jar<'f>(files: &'f [PathBuf], name: &str) -> Result<&'f Path> {
    let fits = |file: &&PathBuf| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let version = stem.strip_prefix(name).and_then(|v| v.strip_prefix('-'));
        version.is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit() || c == 'v'))
    };
    let file = files.iter().find(fits);
    file.map(PathBuf::as_path)
        .with_context(|| format!("Maven did not fetch the jar {name}"))
}

fn title(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Returns the classes of a jar. Each class has the Java version for which it is meant. Includes files with the
/// extension `.lombok`, which are classes that normal class loaders do not find.
fn classes(jar: &Path) -> Result<Vec<Class>> {
    let told = || jar.display().to_string();
    let mut archive = ZipArchive::new(File::open(jar).with_context(told)?).with_context(told)?;
    let mut classes = Vec::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).with_context(told)?;
        let path = entry.name().with_context(told)?.into_owned();
        let is_class = path.ends_with(".class") || path.ends_with(".lombok");
        if !is_class || path.ends_with("-info.class") {
            continue;
        }
        let version = path.strip_prefix("META-INF/versions/");
        let version = version.and_then(|rest| rest.split('/').next());
        let version = version
            .map_or(Ok(0), str::parse)
            .with_context(|| path.clone())?;
        let mut bytes = Vec::new();
        entry
            .read_to_end(&mut bytes)
            .with_context(|| path.clone())?;
        classes.push(Class {
            path,
            version,
            bytes,
        });
    }
    Ok(classes)
}

fn rows(title: &str, about: &str, outcome: &Outcome) -> String {
    let mut rows = String::new();
    for (at, on) in outcome.on.iter().enumerate() {
        let head = match at {
            0 => format!(
                "| {title} | {about} | {} | {} | {} | {} | {} |",
                outcome.classes,
                outcome.rewritten,
                outcome.sites,
                outcome.left_alone.len(),
                outcome.dropped.len(),
            ),
            _ => "| | | | | | | |".to_owned(),
        };
        let [linked, missing, refused, differ] = on.loaded;
        let compared = match on.compared {
            Some([methods, unread, differ]) => format!("{methods} | {unread} | {differ}"),
            None => " | | ".to_owned(),
        };
        rows += &format!(
            "{head} {} | {linked} | {missing} | {refused} | {differ} | {compared} |\n",
            on.jdk
        );
    }
    rows
}
