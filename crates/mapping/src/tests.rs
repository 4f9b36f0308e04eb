use super::*;
use proguard::{ProguardMapper, StackFrame};
use proptest::prelude::*;

/// A mapping as ProGuard writes it. It has overloads with different line numbers, and a method that was inlined from
/// another class.
const PROGUARD: &str = "\
# compiler: ProGuard
com.acme.shop.Server -> com.acme.shop.Server:
    1:20:void main(java.lang.String[]):30:49 -> main
com.acme.shop.Sessions -> a.b:
    java.util.Map open -> a
    int opened -> a
    long last -> b
    12:14:void <init>():12:14 -> <init>
    20:24:void open(java.lang.String) -> a
    30:31:void open(java.lang.String,int):30:31 -> a
    40:40:void close() -> a
    1016:1017:void com.acme.shop.Log.note(java.lang.String):7:8 -> b
    1016:1017:void touch():50 -> b
    51:52:void touch():51:52 -> b
    void flush() -> c
    void sweep() -> d
    void rest() -> d
com.acme.shop.Sessions$Entry -> a.b$a:
";

/// A mapping as R8 writes it. It has source files, changed line numbers, and a class that R8 created.
const R8: &str = "\
# compiler: R8
# compiler_version: 8.2.42
# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.2\"}
com.acme.Cart -> a.a:
# {\"id\":\"sourceFile\",\"fileName\":\"Basket.kt\"}
    java.util.List lines -> a
    int com.acme.Merged.count -> b
    1:4:void <init>():10:13 -> <init>
    1:1:int com.acme.Sums.square(int):5:5 -> a
    1:1:int com.acme.Sums.twice(int):9 -> a
    1:1:void add(com.acme.Line):22 -> a
      # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"(La/b;)V\"}
    2:2:void add(com.acme.Line):23:23 -> a
com.acme.Sums -> com.acme.Sums:
# {\"id\":\"sourceFile\",\"fileName\":\"Sums.kt\"}
com.acme.Cart$$ExternalSyntheticLambda0 -> a.c:
# {\"id\":\"sourceFile\",\"fileName\":\"R8$$SyntheticClass\"}
# {\"id\":\"com.android.tools.r8.synthesized\"}
    1:1:void run():0:0 -> run
";

fn mapping(text: &str) -> Mapping {
    Mapping::new([text.as_bytes().to_vec()]).unwrap()
}

fn frame(class: &str, method: &str, file: Option<&str>, line: Option<u32>) -> Frame {
    Frame {
        class: class.to_owned(),
        method: method.to_owned(),
        file: file.map(str::to_owned),
        line: line.map_or(Line::Unknown, Line::Number),
    }
}

fn texts(mapping: &Mapping, class: &str, method: &str, line: Option<u32>) -> Vec<String> {
    let file = line.map(|_| "SourceFile");
    let frames = mapping.frames(&frame(class, method, file, line)).unwrap();
    let text = |f: &Frame| {
        let line = match f.line {
            Line::Number(line) => format!(":{line}"),
            _ => String::new(),
        };
        let file = f.file.as_deref().unwrap_or("?");
        format!("{}.{}({file}{line})", f.class, f.method)
    };
    frames.iter().map(text).collect()
}

#[test]
fn classes_arrays_inner_and_generated_classes_are_renamed() {
    let mapping = mapping(PROGUARD);
    assert!(!mapping.fits());
    for (name, original) in [
        ("a.b", "com.acme.shop.Sessions"),
        ("a.b[][]", "com.acme.shop.Sessions[][]"),
        ("a.b$a", "com.acme.shop.Sessions$Entry"),
        ("a.b$$Lambda/0x1", "com.acme.shop.Sessions$$Lambda/0x1"),
        (
            "a.b$$Lambda$14/0x1[]",
            "com.acme.shop.Sessions$$Lambda$14/0x1[]",
        ),
        ("com.acme.shop.Server", "com.acme.shop.Server"),
    ] {
        assert_eq!(mapping.class(name).as_deref(), Some(original), "{name}");
    }
    assert!(mapping.fits());
    for unknown in ["a.c", "a", "", "[]", "java.lang.String", "a.b$b", "$$", "/"] {
        assert_eq!(mapping.class(unknown), None, "{unknown}");
    }
}

#[test]
fn fields_by_name_and_type() {
    let pro = mapping(PROGUARD);
    assert_eq!(pro.field("a.b", "a", "Object"), Some("open"));
    assert_eq!(pro.field("a.b", "a", "int"), Some("opened"));
    assert_eq!(pro.field("a.b", "b", "long"), Some("last"));
    assert_eq!(pro.field("a.b", "c", "long"), None);
    assert_eq!(pro.field("a.b$a", "a", "int"), None);
    assert_eq!(mapping(R8).field("a.a", "b", "int"), Some("count"));
}

#[test]
fn frames_of_proguard() {
    let mapping = mapping(PROGUARD);
    let at = |method, line| texts(&mapping, "a.b", method, Some(line));
    assert_eq!(
        at("a", 22),
        ["com.acme.shop.Sessions.open(Sessions.java:22)"]
    );
    assert_eq!(
        at("a", 40),
        ["com.acme.shop.Sessions.close(Sessions.java:40)"]
    );
    assert_eq!(
        at("b", 1017),
        [
            "com.acme.shop.Log.note(Log.java:8)",
            "com.acme.shop.Sessions.touch(Sessions.java:50)"
        ]
    );
    assert_eq!(
        at("b", 52),
        ["com.acme.shop.Sessions.touch(Sessions.java:52)"]
    );
    assert_eq!(
        at("c", 99),
        ["com.acme.shop.Sessions.flush(Sessions.java:99)"]
    );
    // The mapping does not contain this line number. If one original method has this name in the dump, the frame gets
    // its original name. If several original methods have this name, the frame gets the names of all of them.
    assert_eq!(at("b", 7), ["com.acme.shop.Sessions.touch(Sessions.java)"]);
    assert_eq!(
        at("a", 7),
        ["com.acme.shop.Sessions.open|close(Sessions.java)"]
    );
    assert_eq!(at("z", 7), ["com.acme.shop.Sessions.z(Sessions.java:7)"]);
    let bare = |method| texts(&mapping, "a.b", method, None);
    assert_eq!(bare("a"), ["com.acme.shop.Sessions.open|close(?)"]);
    assert_eq!(bare("c"), ["com.acme.shop.Sessions.flush(?)"]);
    assert_eq!(bare("d"), ["com.acme.shop.Sessions.sweep|rest(?)"]);
    assert_eq!(mapping.frames(&frame("b.b", "a", None, None)), None);
}

#[test]
fn frames_of_r8() {
    let mapping = mapping(R8);
    assert_eq!(
        texts(&mapping, "a.a", "a", Some(1)),
        [
            "com.acme.Sums.square(Sums.kt:5)",
            "com.acme.Sums.twice(Sums.kt:9)",
            "com.acme.Cart.add(Basket.kt:22)",
        ]
    );
    let one = |class, method, line| texts(&mapping, class, method, line);
    assert_eq!(
        one("a.a", "a", Some(2)),
        ["com.acme.Cart.add(Basket.kt:23)"]
    );
    assert_eq!(
        one("a.a", "<init>", Some(3)),
        ["com.acme.Cart.<init>(Basket.kt:12)"]
    );
    assert_eq!(one("a.a", "a", None), ["com.acme.Cart.add(Basket.kt)"]);
    let made = one("a.c", "run", Some(1));
    assert_eq!(
        made,
        ["com.acme.Cart$$ExternalSyntheticLambda0.run(Cart.java:1)"]
    );
}

/// With a real R8 mapping, the restored frames equal those that R8's own retrace tool prints.
#[test]
fn frames_equal_those_of_r8_retrace() {
    let mapping = mapping(include_str!("../../../testdata/shrunk/mapping-r8.txt"));
    let shop = "com.acme.shop.Shop";
    let main = |line: usize| format!("{shop}.main(Shop.java:{line})");
    let open = format!("{shop}.open(Shop.java:52)");
    let filled = |line: usize| format!("{shop}.filled(Shop.java:{line})");
    let inlined = |own: String| vec![own, open.clone(), main(65)];
    let added = |line: usize| inlined(format!("{shop}$Registry.add(Shop.java:{line})"));
    for (line, frames) in [
        (1, vec![main(65)]),
        (2, vec![open.clone(), main(65)]),
        (3, vec![open.clone(), main(65)]),
        (4, inlined(filled(57))),
        (
            5,
            vec![
                format!("{shop}$Cart.put(Shop.java:37)"),
                filled(58),
                open.clone(),
                main(65),
            ],
        ),
        (6, added(23)),
        (7, added(24)),
        (8, vec![main(65)]),
        (9, vec![main(66)]),
        (10, vec![main(67)]),
        (11, vec![main(67)]),
    ] {
        assert_eq!(texts(&mapping, shop, "main", Some(line)), frames, "{line}");
    }
    for (class, line, frame) in [
        ("com.acme.shop.a", Some(1), "Shop$Cart.<init>(Shop.java:32)"),
        ("com.acme.shop.a", Some(2), "Shop$Cart.<init>(Shop.java:30)"),
        ("com.acme.shop.a", Some(5), "Shop$Cart.<init>(Shop.java:33)"),
        ("com.acme.shop.b", Some(1), "Shop$Line.<init>(Shop.java:45)"),
        (
            "com.acme.shop.c",
            Some(2),
            "Shop$Registry.<init>(Shop.java:19)",
        ),
        ("com.acme.shop.a", None, "Shop$Cart.<init>(Shop.java)"),
    ] {
        let frame = format!("com.acme.shop.{frame}");
        assert_eq!(texts(&mapping, class, "<init>", line), [frame]);
    }
    // After fields and methods, R8 adds comments with residual signatures. These comments must not change a name.
    for (class, field, original) in [
        (shop, "a", "registry"),
        (shop, "b", "opened"),
        (shop, "c", "shop"),
        ("com.acme.shop.a", "b", "lines"),
        ("com.acme.shop.c", "a", "carts"),
    ] {
        let kind = if original == "opened" {
            "int"
        } else {
            "Object"
        };
        assert_eq!(mapping.field(class, field, kind), Some(original));
    }
}

#[test]
fn a_preserved_source_file_name_stays() {
    let text = "com.acme.Tools -> a:\n    1:1:void com.acme.Other.go():3:3 -> b\n    1:1:void run():9 -> b\n";
    let kit = frame("a", "b", Some("Kit.kt"), Some(1));
    let frames = mapping(text).frames(&kit).unwrap();
    let files: Vec<_> = frames.iter().map(|f| f.file.as_deref()).collect();
    assert_eq!(files, [Some("Other.kt"), Some("Kit.kt")]);
}

#[test]
fn several_mappings_are_merged_and_the_first_wins() {
    let texts =
        || ["x.A -> a:\n    int n -> a", "x.B -> b:\ny.A -> a:\n"].map(|t| t.as_bytes().to_vec());
    let both = Mapping::new(texts()).unwrap();
    assert_eq!(both.class("a").as_deref(), Some("x.A"));
    assert_eq!(both.class("b").as_deref(), Some("x.B"));
    assert_eq!(both.field("a", "a", "int"), Some("n"));
    assert_eq!(both.hash(), Mapping::new(texts()).unwrap().hash());
    assert_ne!(both.hash(), mapping(PROGUARD).hash());
}

#[test]
fn invalid_mappings_are_refused_with_their_line() {
    for (text, message) in [
        (
            "",
            "it contains no class; a mapping has lines such as `com.acme.Foo -> a.b:`",
        ),
        (
            "# only a comment\n\n",
            "it contains no class; a mapping has lines such as `com.acme.Foo -> a.b:`",
        ),
        (
            "x.A -> a:\nhello\n",
            "line 2 is not a class, a member or a comment: hello",
        ),
        (
            "x.A -> a:\r\n\r\n    int -> \x1b[2J\r\n",
            "line 3 is not a class, a member or a comment:     int -> \\u{1b}[2J",
        ),
        (
            "    int n -> a\n",
            "line 1 is a member, but no class comes before it:     int n -> a",
        ),
        (
            "x.A -> a:\n    1:99999999999:void m():1:2 -> b\n",
            "line 2 of the file contains an invalid source line number:     1:99999999999:void m():1:2 -> b",
        ),
    ] {
        let (_, error) = Mapping::new([text.as_bytes().to_vec()]).unwrap_err();
        assert_eq!(error.to_string(), message, "{text:?}");
    }
    let long = format!("x.A -> a:\n{}\n", "é".repeat(500));
    let (_, error) = Mapping::new([long.into_bytes()]).unwrap_err();
    assert!(error.to_string().ends_with("é…"));
    let (at, _) = Mapping::new([b"x.A -> a:".to_vec(), b"PK\x03\x04".to_vec()]).unwrap_err();
    assert_eq!(at, 1);
}

#[test]
fn a_byte_order_mark_and_crlf_are_accepted() {
    let text = "\u{feff}x.A -> a:\r\n    int n -> b\r\n# comment\r\nx.B -> c:";
    let mapping = mapping(text);
    assert_eq!(mapping.class("a").as_deref(), Some("x.A"));
    assert_eq!(mapping.class("c").as_deref(), Some("x.B"));
    assert_eq!(mapping.field("a", "b", "int"), Some("n"));
}

/// Generates random valid and invalid lines that look like those of mappings.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = prop_oneof![
        "[a-c]\\.[A-C](\\$[a-b])? -> [a-c]:",
        "    (int|long|x\\.Y) [m-o] -> [a-c]",
        "    [0-9]{1,2}:[0-9]{1,2}:void [m-o]\\([a-c]?\\):[0-9]{1,3}:[0-9]{1,3} -> [a-c]",
        "    [0-9]{1,2}:[0-9]{1,2}:void [a-c]\\.[A-C]\\.[m-o]\\(\\):[0-9]{1,3} -> [a-c]",
        "    void [m-o]\\(\\) -> [a-c]",
        "# \\{\"id\":\"sourceFile\",\"fileName\":\"[A-C]\\.kt\"\\}",
        "\\PC{0,20}",
    ];
    prop::collection::vec(line, 0..20)
}

proptest! {
    #[test]
    fn no_input_causes_a_panic(lines in lines(), bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..500_usize) {
        let mut text = lines.join("\n").into_bytes();
        let _ = Mapping::new([bytes.clone()]);
        for text in [text.clone(), { text.splice(at.min(text.len())..at.min(text.len()), bytes); text }] {
            let Ok(mapping) = Mapping::new([text]) else { continue };
            for name in ["a", "b", "c", "a[]", "a$$x"] {
                let _ = mapping.class(name);
                let _ = mapping.field(name, "a", "int");
                for line in [None, Some(0), Some(5), Some(u32::MAX)] {
                    let frames = mapping.frames(&frame(name, "a", None, line));
                    prop_assert!(frames.is_none_or(|f| !f.is_empty()));
                }
            }
        }
    }

    /// Compares frames with those of the `proguard` crate, an independent implementation. Frames are not compared if
    /// the mapping does not contain their line number.
    #[test]
    fn frames_equal_those_of_another_implementation(
        ranges in prop::collection::vec((1..40_usize, 0..5_usize, 1..99_usize, 0..5_usize, any::<bool>()), 1..8),
        line in 1..50_u32,
    ) {
        let mut text = "x.A -> a:\n".to_owned();
        for (n, (start, more, original, span, other)) in ranges.iter().enumerate() {
            let class = if *other { "x.Other." } else { "" };
            let span = if *span == 0 { String::new() } else { format!(":{}", original + more) };
            text += &format!("    {start}:{}:void {class}m{n}():{original}{span} -> b\n", start + more);
        }
        let mapper = ProguardMapper::new(proguard::ProguardMapping::new(text.as_bytes()));
        let theirs: Vec<_> = mapper.remap_frame(&StackFrame::new("a", "b", line as usize)).collect();
        let theirs: Vec<_> = theirs.iter().filter(|f| f.method() != "b")
            .map(|f| (f.class().to_owned(), f.method().to_owned(), f.line())).collect();
        let ours = mapping(&text).frames(&frame("a", "b", None, Some(line))).unwrap();
        let ours: Vec<_> = ours.into_iter().filter_map(|f| match f.line {
            Line::Number(line) => Some((f.class, f.method, Some(line as usize))),
            _ => None,
        }).collect();
        prop_assert_eq!(ours, theirs);
    }
}
