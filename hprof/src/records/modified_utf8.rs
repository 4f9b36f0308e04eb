//! Decodes names in modified UTF-8, as the JVM writes them: U+0000 takes two bytes, and a character above U+FFFF takes
//! six bytes, as a pair of surrogates.

use std::borrow::Cow;

/// Returns a name as a string. Different names have different strings. U+0000 and unpaired surrogates are escaped as in
/// Java source (`\\u0000`, `\\ud83d`), and invalid bytes as `\\xff`. So every backslash in a name is doubled.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(['\\', '\0']) => text.into(),
        _ => decoded(bytes).into(),
    }
}

fn decoded(mut bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    while let [first, after @ ..] = bytes {
        let escaped = |unit: u32| format!("\\u{unit:04x}");
        let (part, rest) = match (surrogate(bytes), bytes) {
            (_, [0, rest @ ..] | [0xc0, 0x80, rest @ ..]) => (escaped(0), rest),
            (_, [b'\\', rest @ ..]) => ("\\\\".to_owned(), rest),
            (Some((high, rest)), _) => match (high, surrogate(rest)) {
                (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, rest))) => {
                    let number = 0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00);
                    let pair = char::from_u32(number).map(String::from);
                    (pair.unwrap_or_default(), rest)
                }
                _ => (escaped(high), rest),
            },
            _ => {
                let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
                match valid.split(['\\', '\0']).next() {
                    Some("") | None => (format!("\\x{first:02x}"), after),
                    Some(plain) => (plain.into(), &bytes[plain.len()..]),
                }
            }
        };
        out += &part;
        bytes = rest;
    }
    out
}

/// Returns the surrogate at the start of `bytes`, and the bytes after it.
fn surrogate(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes {
        [0xed, a @ 0xa0..=0xbf, b @ 0x80..=0xbf, rest @ ..] => {
            let unit = 0xd000 | u32::from(a & 0x3f) << 6 | u32::from(b & 0x3f);
            Some((unit, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_decoded_for_display() {
        let cases: [(&[u8], &str); 9] = [
            (b"com/acme/Foo$1", "com/acme/Foo$1"),
            ("Zähler".as_bytes(), "Zähler"),
            (b"A\xed\xa0\xbd\xed\xb8\x80B", "A\u{1f600}B"),
            ("\u{1f600}".as_bytes(), "\u{1f600}"),
            (b"A\xc0\x80B\xc3\xa4", "A\\u0000B\u{e4}"),
            (b"A\xed\xa0\xbd", "A\\ud83d"),
            (b"A\xed\xb8\x80\xed\xa0\xbd", "A\\ude00\\ud83d"),
            (b"A\xff\xed\xa0", "A\\xff\\xed\\xa0"),
            (b"A\\u0000", "A\\\\u0000"),
        ];
        for (bytes, shown) in cases {
            assert_eq!(text(bytes), shown);
        }
    }

    #[test]
    fn different_names_give_different_strings() {
        let parts: [&[u8]; 9] = [
            b"\xed\xa0\xbd",
            b"\xed\xa0\xbe",
            b"\xff",
            b"\xfe",
            b"\xc0\x80",
            b"\\",
            b"u0000",
            b"xff",
            b"",
        ];
        let mut texts = HashSet::new();
        let mut names = HashSet::new();
        for a in parts {
            for b in parts {
                for c in parts {
                    let name = [b"n", a, b, c].concat();
                    if names.insert(name.clone()) {
                        assert!(texts.insert(text(&name).into_owned()), "{name:?}");
                    }
                }
            }
        }
    }
}
