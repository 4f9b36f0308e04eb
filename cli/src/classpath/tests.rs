//! Tests each kind of class path, and damaged files. The fields that are read must be those of the compiled source.

use std::io::Write;
use std::process::Command;

use proptest::prelude::*;
use testdata::jvm::Jdk;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const SOURCE: &str = "package com.acme; public class Kept {
    final String name = \"a\"; int count; Object any; static final Object ONE = new Object(); static Kept next;
    record Pair(Object left, int right) {} }";

/// Compiles [`SOURCE`] into the folder, as `com/acme/Kept.class`. Returns the JDK.
fn compiled(folder: &Path) -> Jdk {
    let source = folder.join("Kept.java");
    fs::write(&source, SOURCE).unwrap();
    compile(folder, &source)
}

/// Compiles a file into the folder. Returns the JDK.
fn compile(folder: &Path, source: &Path) -> Jdk {
    let jdk = Jdk::all_for_scenarios().pop().expect("a JDK");
    let mut javac = Command::new(jdk.home().join("bin/javac"));
    javac.args(["-d".as_ref(), folder.as_os_str(), source.as_os_str()]);
    assert!(javac.status().unwrap().success());
    jdk
}

fn flags(fields: &[DeclaredField]) -> Vec<(&str, bool, bool)> {
    let flags = |f: &'_ DeclaredField| (f.is_static, f.is_final);
    fields
        .iter()
        .map(|f| (&*f.name, flags(f).0, flags(f).1))
        .collect()
}

const EXPECTED: [(&str, bool, bool); 5] = [
    ("name", false, true),
    ("count", false, false),
    ("any", false, false),
    ("ONE", true, true),
    ("next", true, false),
];

/// Returns a jar that contains the class as an entry of this name.
fn jar(class: &[u8], name: &str) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(name, SimpleFileOptions::default()).unwrap();
    zip.write_all(class).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn folders_jars_modules_and_images_give_the_same_fields() {
    let folder = tempfile::tempdir().unwrap();
    let jdk = compiled(folder.path());
    let class = fs::read(folder.path().join("com/acme/Kept.class")).unwrap();
    let (plain, boot, jmod, all) = (
        folder.path().join("plain.jar"),
        folder.path().join("boot.jar"),
        folder.path().join("own.jmod"),
        folder.path().join("*"),
    );
    let inner = jar(&class, "com/acme/Kept.class");
    fs::write(&plain, &inner).unwrap();
    fs::write(&boot, jar(&inner, "BOOT-INF/lib/inner.jar")).unwrap();
    let packed = jar(&class, "classes/com/acme/Kept.class");
    fs::write(&jmod, [b"JM\x01\0".as_slice(), &packed].concat()).unwrap();
    for path in [folder.path(), &plain, &boot, &jmod, &all] {
        let mut classpath = Classpath::open(&[ClassPath(vec![path.to_owned()])]).unwrap();
        let found = classpath.fields("com.acme.Kept").unwrap();
        let found = found.unwrap_or_else(|| panic!("{}", path.display()));
        assert_eq!(flags(&found), EXPECTED, "{}", path.display());
        assert_eq!(classpath.fields("com.acme.Other").unwrap(), None);
        assert_eq!(classpath.fields("java.lang.String").unwrap(), None);
    }
    let mut image = Classpath::open(&[ClassPath(vec![jdk.home().to_owned()])]).unwrap();
    let string = image.fields("java.lang.String").unwrap().unwrap();
    let flag = |name| string.iter().find(|f| f.name == name).unwrap().is_final;
    assert!(flag("value") && !flag("hash"), "{string:?}");
    assert_eq!(image.fields("com.acme.Kept").unwrap(), None);
}

#[test]
fn class_names_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("classes");
    fs::create_dir(&inside).unwrap();
    fs::write(folder.path().join("Secret.class"), "not a class file").unwrap();
    let mut classpath = Classpath::open(&[ClassPath(vec![inside])]).unwrap();
    let beside = folder.path().join("Secret").display().to_string();
    for name in ["../Secret", "...Secret", "..", "", "a\0b", &*beside] {
        assert_eq!(classpath.fields(name).unwrap(), None, "{name}");
    }
    let mut classpath = Classpath::open(&[ClassPath(vec![folder.path().to_owned()])]).unwrap();
    let error = classpath.fields("Secret").unwrap_err();
    assert!(
        error.message.contains("class Secret: not a class file"),
        "{error}"
    );
}

#[test]
fn invalid_class_paths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = |bytes: &[u8]| {
        let path = folder.path().join("file");
        fs::write(&path, bytes).unwrap();
        Classpath::open(&[ClassPath(vec![path])])
            .err()
            .map(|e| e.message)
    };
    let text = open(b"Dear classes,").unwrap();
    assert!(text.contains("not a jar or a folder"), "{text}");
    // An image whose header gives 4 GB as the length of the index.
    let mut image = [0xff; 64];
    image[..4].copy_from_slice(&MAGIC_LITTLE);
    let text = open(&image).unwrap();
    assert!(text.contains("longer than the file"), "{text}");
    let missing = Classpath::open(&[ClassPath(vec![folder.path().join("missing")])])
        .err()
        .unwrap();
    assert!(missing.message.contains("No such file"), "{missing}");
}

#[test]
fn suspension_points_have_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Load.java");
    // This annotation has the same name as the annotation of Kotlin's compiler.
    let text = "package kotlin.coroutines.jvm.internal;\n\
        import java.lang.annotation.*;\n\
        @Retention(RetentionPolicy.RUNTIME) @interface DebugMetadata {\n\
            int v() default 1; String f(); int[] l(); String m(); String c();\n\
        }\n\
        @Deprecated @DebugMetadata(f = \"Orders.kt\", l = {9, 12}, m = \"load\", c = \"a.OrdersKt\")\n\
        class Load {}\n\
        class Plain {}\n";
    fs::write(&source, text).unwrap();
    compile(folder.path(), &source);
    let mut classpath = Classpath::open(&[ClassPath(vec![folder.path().to_owned()])]).unwrap();
    let mut read = |class: &str| {
        let class = format!("kotlin.coroutines.jvm.internal.{class}");
        classpath.suspend_function(&class).unwrap()
    };
    let load = read("Load").unwrap();
    let frame = |line| Some(format!("a.OrdersKt.load(Orders.kt:{line})"));
    assert_eq!([1, 2].map(|label| load.frame(label)), [frame(9), frame(12)]);
    assert_eq!(
        [-1, 0, 3].map(|label| load.frame(label)),
        [None, None, None]
    );
    assert_eq!(read("Plain"), None);
    assert_eq!(read("Absent"), None);
}

const MAGIC_LITTLE: [u8; 4] = [0xda, 0xda, 0xfe, 0xca];

#[test]
fn entries_longer_than_the_limit_are_refused() {
    let zeros = vec![0; 100_000];
    let packed = jar(&zeros, "A.class");
    let mut archive = Archive::new(Cursor::new(packed)).unwrap().0;
    assert!(archive.zip.content(0, 99_999).is_err());
    assert_eq!(archive.zip.content(0, 100_000).unwrap(), zeros);
}

proptest! {
    /// Parsing a class file with any bytes terminates without a panic.
    #[test]
    fn damaged_class_files_are_refused_or_read(at in 0..1000_usize, byte: u8, cut in 0..2000_usize) {
        use std::sync::OnceLock;
        static CLASS: OnceLock<Vec<u8>> = OnceLock::new();
        let class = CLASS.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            compiled(folder.path());
            fs::read(folder.path().join("com/acme/Kept.class")).unwrap()
        });
        let mut damaged = class.clone();
        let at = at % damaged.len();
        damaged[at] = byte;
        damaged.truncate(cut.max(1));
        let _ = declared(&damaged);
        let len = class.len();
        damaged.truncate(len);
        prop_assert!(declared(class).is_ok());
        if cut < len / 2 {
            prop_assert!(declared(&class[..cut]).is_err());
        }
    }
}
