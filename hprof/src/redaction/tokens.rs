//! Tokens that replace strings: letters that show which strings are equal, and nothing else.
//!
//! A token is a SipHash of the string. The keys are random for each redaction and are not stored. The letters of a
//! token are `à` to `ÿ`. Strings of programs do not consist of these letters alone, so tokens can be distinguished from
//! strings that were not replaced.

use std::hash::{BuildHasher, RandomState};

/// Number of letters in a token. Together, the letters encode 60 bits.
const LETTERS: usize = 12;
/// The code of `à`, the first of the 32 letters of which tokens consist, in Latin-1 and Unicode.
const FIRST: u8 = 0xe0;
/// The filler `·`, which extends a token to the length of the string. Tokens of short strings have no filler.
const REST: u8 = 0xb7;
/// Arrays of at most this length are replaced by a token. Longer arrays are not names, words or keys, so they are
/// replaced by zeros.
pub(super) const LONGEST: usize = 512;

/// Creates the tokens of one redaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    keys: RandomState,
}

impl Tokens {
    /// Appends the token that replaces `text` to `out`. The token has the same length as `text`. A letter takes one
    /// byte, or two if `wide`.
    pub(super) fn write(&self, text: &[u8], wide: bool, out: &mut Vec<u8>) {
        let mut bits = self.keys.hash_one(text);
        let units = if wide { text.len() / 2 } else { text.len() };
        for at in 0..units {
            if wide {
                out.push(0);
            }
            if at < LETTERS {
                out.push(FIRST | (bits & 0x1f) as u8);
                bits >>= 5;
            } else {
                out.push(REST);
            }
        }
        out.resize(out.len() + text.len() - units * if wide { 2 } else { 1 }, 0);
    }
}

impl Tokens {
    /// Overwrites a UTF-8 string with a token. Each letter of the token takes two bytes.
    pub(super) fn write_utf8(&self, text: &mut [u8]) {
        let mut bits = self.keys.hash_one(&*text);
        let mut units = text.chunks_exact_mut(2);
        for (at, unit) in (&mut units).enumerate() {
            let letter = if at < LETTERS {
                FIRST | (bits & 0x1f) as u8
            } else {
                REST
            };
            bits >>= 5;
            unit.copy_from_slice(char::from(letter).encode_utf8(&mut [0; 2]).as_bytes());
        }
        units.into_remainder().fill(b'.');
    }

    /// Appends a token that replaces a number other than zero. Its first byte shows that it is a token. Zero stays
    /// zero.
    pub(super) fn number(&self, number: &[u8], out: &mut Vec<u8>) {
        let hash = self.keys.hash_one(number).to_be_bytes();
        if number.iter().all(|&b| b == 0) {
            out.extend_from_slice(number);
        } else {
            out.push(NUMBER);
            out.extend_from_slice(&hash[..number.len() - 1]);
        }
    }
}

/// The first byte of a number's token.
const NUMBER: u8 = 0x7e;

/// True if a string's bytes are a token or zeros.
pub(super) fn is_token(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b == 0 || b == REST || b >= FIRST)
}

/// True if the bytes of a field are a token that replaces a number (the first byte is [`NUMBER`]), or zeros.
pub(super) fn is_number_token(bytes: &[u8]) -> bool {
    bytes.first() == Some(&NUMBER) || bytes.iter().all(|&b| b == 0)
}

/// True if a string is a token in UTF-8.
pub(super) fn is_utf8_token(text: &[u8]) -> bool {
    let mut letters = str::from_utf8(text).unwrap_or("?").chars();
    letters.all(|c| c == '.' || c == char::from(REST) || ('à'..='ÿ').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(tokens: &Tokens, text: &[u8], wide: bool) -> Vec<u8> {
        let mut out = Vec::new();
        tokens.write(text, wide, &mut out);
        out
    }

    #[test]
    fn only_equal_strings_have_equal_tokens() {
        let tokens = Tokens::default();
        for text in [&b"a"[..], b"secret", &[7; LONGEST]] {
            for wide in [false, true] {
                let one = token(&tokens, text, wide);
                assert_eq!(one.len(), text.len());
                assert!(is_token(&one) && !is_token(text));
                assert_eq!(one, token(&tokens, text, wide));
            }
        }
        let many: std::collections::HashSet<Vec<u8>> = (0..10_000)
            .map(|n| token(&tokens, format!("key number {n}").as_bytes(), false))
            .collect();
        assert_eq!(many.len(), 10_000);
        // Each redaction has new keys.
        let other = Tokens::default();
        assert_ne!(
            token(&tokens, b"secret", false),
            token(&other, b"secret", false)
        );
    }

    #[test]
    fn tokens_in_utf_8_are_valid_and_have_the_same_letters() {
        let tokens = Tokens::default();
        for text in [
            "worker-1",
            "a",
            "",
            "Größe eines sehr langen Namens ohne Ende",
        ] {
            let mut wide = text.as_bytes().to_vec();
            tokens.write_utf8(&mut wide);
            let wide = String::from_utf8(wide).unwrap();
            assert_eq!(wide.len(), text.len());
            let narrow = token(&tokens, text.as_bytes(), false);
            let begins = wide.trim_end_matches('.').chars();
            assert!(begins.zip(narrow).all(|(a, b)| a == char::from(b)));
        }
    }

    #[test]
    fn tokens_of_numbers_are_distinguished_from_numbers() {
        let tokens = Tokens::default();
        for number in [
            &[0, 0, 0, 42][..],
            &[0, 0, 0, 0, 0, 1, 226, 64],
            &[7],
            &[1, 0],
        ] {
            let mut out = Vec::new();
            tokens.number(number, &mut out);
            assert_eq!(out.len(), number.len());
            assert!(is_number_token(&out) && !is_number_token(number));
        }
        let mut out = Vec::new();
        tokens.number(&[0; 4], &mut out);
        assert_eq!(out, [0; 4]);
    }
}
