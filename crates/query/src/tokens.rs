//! Splits a statement in SQL or OQL into tokens.

/// A part of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'s> {
    /// A name, a keyword or a number.
    Word(&'s str),
    /// The content of a string in single quotes. A quote in the string is still written twice.
    Single(&'s str),
    /// The content of double quotes: a name in SQL, a string in OQL.
    Double(&'s str),
    /// An operator or another sign.
    Sign(&'s str),
}

impl Token<'_> {
    /// True if the token is this keyword, in upper or lower case.
    pub(crate) fn is(self, word: &str) -> bool {
        matches!(self, Token::Word(w) if w.eq_ignore_ascii_case(word))
    }
}

/// Returns the tokens of a statement without its comments. A string without a closing quote extends to the end of the
/// statement.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let ends = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let (token, end) = match first {
            '-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => {
                (None, rest.find("*/").map_or(rest.len(), |at| at + 2))
            }
            '\'' | '"' => {
                let end = string_end(rest, first);
                let content = rest[1..end].strip_suffix(first).unwrap_or(&rest[1..end]);
                let token = match first {
                    '\'' => Token::Single(content),
                    _ => Token::Double(content),
                };
                (Some(token), end)
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = ends(&|c| c.is_alphanumeric() || c == '_' || c == '$');
                (Some(Token::Word(&rest[..end])), end)
            }
            '=' | '<' | '>' | '!' | '&' | '|' => {
                let end = ends(&|c| "=<>!&|".contains(c));
                (Some(Token::Sign(&rest[..end])), end)
            }
            other => (
                Some(Token::Sign(&rest[..other.len_utf8()])),
                other.len_utf8(),
            ),
        };
        tokens.extend(token);
        rest = rest[end..].trim_start();
    }
    tokens
}

/// Returns the end of the string that begins `text`. A quote in the string is written twice.
fn string_end(text: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(found) = text[at..].find(quote) {
        at += found + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Splits a list of tokens at each comma that is outside of parentheses.
pub(crate) fn items<'t, 's>(tokens: &'t [Token<'s>]) -> Vec<&'t [Token<'s>]> {
    let mut depth = 0_usize;
    let at_comma = move |token: &Token<'_>| {
        match token {
            Token::Sign("(") => depth += 1,
            Token::Sign(")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Sign(",")
    };
    tokens.split(at_comma).collect()
}

/// Returns the index of the first token outside of parentheses that passes a test.
pub(crate) fn outside(tokens: &[Token<'_>], is: impl Fn(Token<'_>) -> bool) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|&token| {
        match token {
            Token::Sign("(") => depth += 1,
            Token::Sign(")") => depth = depth.saturating_sub(1),
            _ => return depth == 0 && is(token),
        }
        false
    })
}

/// Returns the first string in a statement that looks like an id, such as `0x7f00` in `id = '0x7f00'`. Ids are numbers,
/// so they never equal a string.
#[must_use]
pub fn quoted_id(sql: &str) -> Option<&str> {
    tokens(sql).into_iter().find_map(|token| match token {
        Token::Single(text) => {
            let digits = text.strip_prefix("0x")?;
            let is_id = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            is_id.then_some(text)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_quotes_are_found() {
        let quoted = "select * from objects where id in (1, '0xf822')";
        assert_eq!(quoted_id(quoted), Some("0xf822"));
        for sql in [
            "select '0x' from objects where id = 0xf822",
            "select * from strings where value = 'it''s 0xf'",
        ] {
            assert_eq!(quoted_id(sql), None, "{sql}");
        }
    }

    #[test]
    fn statements_are_split() {
        let all = tokens("select a, 'it''s' -- no\nfrom \"b c\" /* x */ where a<=0x1F é");
        let expected = [
            Token::Word("select"),
            Token::Word("a"),
            Token::Sign(","),
            Token::Single("it''s"),
            Token::Word("from"),
            Token::Double("b c"),
            Token::Word("where"),
            Token::Word("a"),
            Token::Sign("<="),
            Token::Word("0x1F"),
            Token::Word("é"),
        ];
        assert_eq!(all, expected);
        for open in ["'a", "\"", "/* a", "-- a", "''", "'''"] {
            tokens(open);
        }
    }
}
