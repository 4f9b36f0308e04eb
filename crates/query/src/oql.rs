//! Recognizes OQL, the query language of Eclipse MAT and VisualVM, and translates its simple forms to SQL.

use crate::tokens::{Token, items, outside, tokens};

/// A statement in OQL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Oql {
    /// The same statement in SQL. `None` if there is no simple translation.
    pub(crate) sql: Option<String>,
}

/// The objects that a statement selects from.
enum Source {
    Class(String),
    /// A class and its subclasses.
    Subclasses(String),
    /// The classes whose whole names match a regular expression.
    Pattern(String),
    Object(String),
}

const STRING: &str = "java.lang.String";

/// Reads a statement; `None` if it is not OQL.
pub(crate) fn read(text: &str) -> Option<Oql> {
    let all = tokens(text);
    let (first, rest) = all.split_first()?;
    if !first.is("select") {
        return None;
    }
    let from = outside(rest, |token| token.is("from"))?;
    let (list, after) = (&rest[..from], &rest[from + 1..]);
    let (source, after) = source(after)?;
    Some(Oql {
        sql: translated(list, &source, after),
    })
}

/// Reads the part after FROM, which names the objects to select from. Returns `None` if the part may be SQL.
///
/// These forms count as OQL: a name with two dots or with `$`, an array class, `instanceof`, an address, or a regular
/// expression in double quotes. A plain name in double quotes may be an SQL table.
fn source<'t, 's>(tokens: &'t [Token<'s>]) -> Option<(Source, &'t [Token<'s>])> {
    let (is_below, tokens) = match tokens {
        [first, rest @ ..] if first.is("instanceof") => (true, rest),
        _ => (false, tokens),
    };
    match tokens {
        [Token::Double(pattern), rest @ ..] if !is_plain(pattern) => {
            Some((Source::Pattern((*pattern).to_owned()), rest))
        }
        [Token::Word(id), rest @ ..] if id.starts_with("0x") => {
            Some((Source::Object((*id).to_owned()), rest))
        }
        [Token::Word(word), rest @ ..] => {
            let (mut name, mut rest, mut points) = ((*word).to_owned(), rest, 0);
            while let [Token::Sign("."), Token::Word(word), more @ ..] = rest {
                name.push('.');
                name.push_str(word);
                (rest, points) = (more, points + 1);
            }
            let mut is_array = false;
            while let [Token::Sign("["), Token::Sign("]"), more @ ..] = rest {
                name.push_str("[]");
                (rest, is_array) = (more, true);
            }
            if is_below {
                Some((Source::Subclasses(name), rest))
            } else {
                let is_class = points > 1 || is_array || name.contains('$');
                is_class.then_some((Source::Class(name), rest))
            }
        }
        _ => None,
    }
}

/// True if a text in double quotes consists of letters, digits and underscores only.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn translated(list: &[Token<'_>], source: &Source, after: &[Token<'_>]) -> Option<String> {
    let (alias, condition) = match after {
        [] => (None, &[][..]),
        [keyword, condition @ ..] if keyword.is("where") => (None, condition),
        [Token::Word(alias)] => (Some(*alias), &[][..]),
        [Token::Word(alias), keyword, condition @ ..] if keyword.is("where") => {
            (Some(*alias), condition)
        }
        _ => return None,
    };
    // If possible, translate a query on strings to the table `strings`, which has columns for length and content.
    // Otherwise use the table `objects`.
    let of_strings = matches!(source, Source::Class(name) if name == STRING);
    let tables: &[bool] = if of_strings { &[true, false] } else { &[false] };
    tables.iter().find_map(|&of_strings| {
        let is_string = matches!(source, Source::Class(name) if name == STRING);
        let words = Words {
            alias,
            of_strings,
            is_string,
        };
        let columns = match list {
            [Token::Sign("*")] => "*".to_owned(),
            [Token::Word(only)] if Some(*only) == alias => "*".to_owned(),
            _ => {
                let items = items(list).into_iter();
                items.map(|item| words.expression(item)).collect::<Option<Vec<_>>>()?.join(", ")
            }
        };
        let condition = match condition {
            [] => None,
            _ => Some(words.expression(condition)?),
        };
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let (table, class) = match source {
            Source::Class(_) if of_strings => ("strings", None),
            Source::Class(name) => ("objects", Some(format!("class = {}", quoted(name)))),
            Source::Pattern(pattern) => {
                ("objects", Some(format!("class regexp {}", quoted(&format!("^({pattern})$")))))
            }
            Source::Object(id) => ("objects", Some(format!("id = {id}"))),
            Source::Subclasses(name) => (
                "objects",
                Some(format!(
                    "class_id in (with recursive c(id) as (select id from classes where class = {} union select k.id \
                     from classes k join c on k.superclass_id = c.id) select id from c)",
                    quoted(name)
                )),
            ),
        };
        let condition = match (&class, condition) {
            (Some(_), Some(condition)) if condition.contains(" or ") => Some(format!("({condition})")),
            (_, condition) => condition,
        };
        let terms: Vec<String> = class.into_iter().chain(condition).collect();
        let query = format!("select {columns} from {table}");
        Some(if terms.is_empty() {
            query
        } else {
            format!("{query} where {}", terms.join(" and "))
        })
    })
}

struct Words<'w> {
    alias: Option<&'w str>,
    /// True if the statement is translated to a query on the table `strings`.
    of_strings: bool,
    /// True if all selected objects are strings.
    is_string: bool,
}

impl Words<'_> {
    /// Translates an OQL expression to SQL. Returns `None` if a part of the expression is unknown.
    fn expression(&self, mut rest: &[Token<'_>]) -> Option<String> {
        let mut out: Vec<String> = Vec::new();
        while let Some((&first, more)) = rest.split_first() {
            let (text, left) = match first {
                Token::Word(word) if Some(word) == self.alias => self.path(more)?,
                Token::Word(word) => match self.function(word, more) {
                    Some(called) => called,
                    None => (plain(word)?, more),
                },
                Token::Single(text) => (format!("'{text}'"), more),
                Token::Double(text) => (format!("'{}'", text.replace('\'', "''")), more),
                Token::Sign(sign) => {
                    let sign = match sign {
                        "==" => "=",
                        "&&" => "and",
                        "||" => "or",
                        "=" | "!=" | "<" | ">" | "<=" | ">=" | "<>" | "(" | ")" | "+" | "-"
                        | "*" => sign,
                        _ => return None,
                    };
                    let is_null = more.first().is_some_and(|next| next.is("null"));
                    let sign = match (sign, is_null) {
                        ("=", true) => "is",
                        ("!=", true) => "is not",
                        (sign, _) => sign,
                    };
                    (sign.to_owned(), more)
                }
            };
            // The operator LIKE of OQL takes a regular expression, which must match the whole string.
            let text = match out.last().map(String::as_str) {
                Some("regexp") => format!("'^({})$'", text.strip_prefix('\'')?.strip_suffix('\'')?),
                _ => text,
            };
            out.push(text);
            rest = left;
        }
        Some(out.join(" ").replace("( ", "(").replace(" )", ")"))
    }

    /// Translates the fields and attributes that follow the object's name in an OQL expression, such as
    /// `.value.length`.
    fn path<'t, 's>(&self, mut rest: &'t [Token<'s>]) -> Option<(String, &'t [Token<'s>])> {
        if self.of_strings {
            let (column, rest) = match rest {
                [
                    Token::Sign("."),
                    Token::Word("toString"),
                    Token::Sign("("),
                    Token::Sign(")"),
                    rest @ ..,
                ] => ("value", rest),
                [
                    Token::Sign("."),
                    Token::Sign("@"),
                    Token::Word(attribute),
                    rest @ ..,
                ] => (column(attribute)?, rest),
                [Token::Sign("."), ..] => match string_length(rest) {
                    Some(rest) => ("length", rest),
                    None => return None,
                },
                rest => ("id", rest),
            };
            return Some((column.to_owned(), rest));
        }
        if self.is_string
            && let Some(rest) = string_length(rest)
        {
            let length = "(select s.length from strings s where s.id = objects.id)";
            return Some((length.to_owned(), rest));
        }
        let mut text = "id".to_owned();
        loop {
            rest = match rest {
                [
                    Token::Sign("."),
                    Token::Sign("@"),
                    Token::Word(attribute),
                    rest @ ..,
                ] if text == "id" => {
                    text = column(attribute)?.to_owned();
                    return Some((text, rest));
                }
                [
                    Token::Sign("."),
                    Token::Word("toString"),
                    Token::Sign("("),
                    Token::Sign(")"),
                    rest @ ..,
                ] => {
                    return Some((format!("text({text})"), rest));
                }
                // `x.field.length` has no simple translation: the length of the array is in the array's own row, not in
                // the row of `x`.
                [Token::Sign("."), Token::Word("length"), ..] if text != "id" => return None,
                [Token::Sign("."), Token::Word("length"), rest @ ..] => {
                    return Some(("length".to_owned(), rest));
                }
                [Token::Sign("."), Token::Word(_), Token::Sign("("), ..] => return None,
                [Token::Sign("."), Token::Word(field), rest @ ..] => {
                    text = format!("field({text}, '{field}')");
                    rest
                }
                [Token::Sign("."), ..] => return None,
                rest => return Some((text, rest)),
            };
        }
    }

    /// Translates a call of an OQL function with an object as its only argument.
    fn function<'t, 's>(
        &self,
        name: &str,
        rest: &'t [Token<'s>],
    ) -> Option<(String, &'t [Token<'s>])> {
        let [Token::Sign("("), Token::Word(object), rest @ ..] = rest else {
            return None;
        };
        if Some(*object) != self.alias {
            return None;
        }
        let (path, rest) = self.path(rest)?;
        let [Token::Sign(")"), rest @ ..] = rest else {
            return None;
        };
        let text = match name {
            "toString" if self.of_strings && path == "id" => "value".to_owned(),
            "toString" => format!("text({path})"),
            _ if path != "id" => return None,
            "classof" if !self.of_strings => "class".to_owned(),
            "sizeof" => "shallow_bytes".to_owned(),
            "rsizeof" => "retained_bytes".to_owned(),
            "objectid" => "id".to_owned(),
            _ => return None,
        };
        Some((text, rest))
    }
}

/// If the tokens begin with an expression for the length of a string, returns the tokens after it.
fn string_length<'t, 's>(tokens: &'t [Token<'s>]) -> Option<&'t [Token<'s>]> {
    let [Token::Sign("."), Token::Word(field), rest @ ..] = tokens else {
        return None;
    };
    match (*field, rest) {
        ("count", rest)
        | ("value", [Token::Sign("."), Token::Word("length"), rest @ ..])
        | (
            "value",
            [
                Token::Sign("."),
                Token::Sign("@"),
                Token::Word("length"),
                rest @ ..,
            ],
        )
        | ("length", [Token::Sign("("), Token::Sign(")"), rest @ ..]) => Some(rest),
        _ => None,
    }
}

/// Returns the SQL column that corresponds to an attribute of Eclipse MAT, such as `@retainedHeapSize`.
fn column(attribute: &str) -> Option<&'static str> {
    Some(match attribute {
        "retainedHeapSize" => "retained_bytes",
        "usedHeapSize" => "shallow_bytes",
        "objectAddress" | "objectId" => "id",
        "length" => "length",
        _ => return None,
    })
}

/// Translates a word of OQL that is an operator, a constant or a number. Returns `None` for any other word.
fn plain(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    match &*lower {
        "like" => Some("regexp".to_owned()),
        "and" | "or" | "not" | "null" | "true" | "false" | "as" => Some(lower),
        _ => word
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_forms_are_translated_to_valid_sql() {
        for (oql, sql) in [
            (
                "SELECT * FROM java.util.HashMap",
                "select * from objects where class = 'java.util.HashMap'",
            ),
            ("select s from java.lang.String s", "select * from strings"),
            (
                "select s from java.lang.String s where s.value.length >= 1000",
                "select * from strings where length >= 1000",
            ),
            (
                "SELECT toString(s), s.@retainedHeapSize FROM java.lang.String s WHERE s.value.@length > 1000",
                "select value, retained_bytes from strings where length > 1000",
            ),
            (
                "select s from java.lang.String s where s.hash == 0 && s.toString() != null",
                "select * from objects where class = 'java.lang.String' and field(id, 'hash') = 0 and text(id) is not null",
            ),
            (
                "select s from java.lang.String s where s.value.length >= 1000 and s.hash != 0",
                "select * from objects where class = 'java.lang.String' and \
                 (select s.length from strings s where s.id = objects.id) >= 1000 and field(id, 'hash') != 0",
            ),
            (
                "SELECT m.size FROM java.util.HashMap m WHERE m.size > 1000 or m.table = null",
                "select field(id, 'size') from objects where class = 'java.util.HashMap' and \
                 (field(id, 'size') > 1000 or field(id, 'table') is null)",
            ),
            (
                "SELECT x.name.toString() FROM com.acme.User x WHERE x.name.toString() LIKE \"A.*\"",
                "select text(field(id, 'name')) from objects where class = 'com.acme.User' and \
                 text(field(id, 'name')) regexp '^(A.*)$'",
            ),
            (
                "SELECT * FROM \"com\\.acme\\..*\"",
                "select * from objects where class regexp '^(com\\.acme\\..*)$'",
            ),
            (
                "SELECT * FROM Outer$Inner",
                "select * from objects where class = 'Outer$Inner'",
            ),
            (
                "SELECT * FROM 0x7f00",
                "select * from objects where id = 0x7f00",
            ),
            (
                "select b from byte[] b where b.length > 100",
                "select * from objects where class = 'byte[]' and length > 100",
            ),
            (
                "SELECT * FROM INSTANCEOF java.util.AbstractMap",
                "select * from objects where class_id in (with recursive c(id) as (select id from classes where \
                 class = 'java.util.AbstractMap' union select k.id from classes k join c on \
                 k.superclass_id = c.id) select id from c)",
            ),
        ] {
            let read = read(oql).unwrap_or_else(|| panic!("{oql}"));
            assert_eq!(read.sql.as_deref(), Some(sql));
            crate::check(sql).unwrap();
        }
    }

    #[test]
    fn other_forms_are_recognized() {
        for oql in [
            "SELECT OBJECTS outbounds(x) FROM java.util.HashMap x",
            "select filter(s) from java.lang.String s",
            "select s from java.lang.String s where s.foo.bar()",
            "select * from java.util.HashMap union (select * from java.util.Hashtable)",
            "select s from java.lang.String s where /x/.test(s)",
        ] {
            assert_eq!(read(oql), Some(Oql { sql: None }), "{oql}");
        }
        for sql in [
            "select * from object",
            "select * from after.objects",
            "select * from \"obects\"",
            "selec 1",
            "select 1",
            "",
        ] {
            assert_eq!(read(sql), None, "{sql}");
        }
    }
}
