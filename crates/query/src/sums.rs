//! Sums over all objects by class, which are known for each class and need no look at the objects.
//!
//! A statement is taken for such a sum only if every word of it is known here; whatever else it is, SQLite sums up
//! the objects.

/// A word, number, text or sign of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'s> {
    Word(&'s str),
    Other(&'s str),
}

/// Words that mean the same over classes as over objects.
const WORDS: [&str; 20] = [
    "group", "by", "having", "order", "asc", "desc", "limit", "offset", "as", "and", "or", "not",
    "between", "like", "glob", "regexp", "in", "is", "null", "class",
];

/// The statement over `classes` that has the rows of one over `objects`, if it is
/// `select ... from objects [where ...] group by class ...` that asks for nothing but the class, `count(*)` and
/// `sum(shallow_bytes)`.
pub(crate) fn from_classes(sql: &str) -> Option<String> {
    let tokens = tokens(sql)?;
    let is = |at: usize, word: &str| matches!(tokens.get(at), Some(Token::Word(w)) if w.eq_ignore_ascii_case(word));
    let sign = |at: usize, text: &str| tokens.get(at) == Some(&Token::Other(text));
    let by_class = (0..tokens.len()).any(|at| {
        is(at, "group")
            && is(at + 1, "by")
            && is(at + 2, "class")
            // `class like 'x'` would be another group.
            && (at + 3 >= tokens.len()
                || sign(at + 3, ";")
                || ["having", "order", "limit"].iter().any(|w| is(at + 3, w)))
    });
    if !is(0, "select") || !by_class {
        return None;
    }
    let mut aliases: Vec<&str> = Vec::new();
    let mut faster = String::from("SELECT");
    let (mut at, mut from, mut open) = (1, false, false);
    while let Some(token) = tokens.get(at) {
        let call = sign(at + 1, "(") && sign(at + 3, ")");
        let (taken, text) = match *token {
            _ if is(at, "from") && !from => {
                from = true;
                let schema = match (tokens.get(at + 1), sign(at + 2, ".")) {
                    (Some(Token::Word(schema)), true) => Some(*schema),
                    _ => None,
                };
                let table = if schema.is_some() { at + 3 } else { at + 1 };
                if !is(table, "objects") {
                    return None;
                }
                let schema = schema.map_or_else(String::new, |s| format!("{s}."));
                let filter = is(table + 1, "where");
                open = filter;
                let rest = if filter { " AND (" } else { "" };
                let text = format!("FROM {schema}classes WHERE objects > 0{rest}");
                (table + 1 + usize::from(filter) - at, text)
            }
            Token::Word(_) if is(at, "count") && call && sign(at + 2, "*") => {
                (4, "sum(objects)".to_owned())
            }
            Token::Word(_) if is(at, "sum") && call && is(at + 2, "shallow_bytes") => {
                (4, "sum(shallow_bytes)".to_owned())
            }
            Token::Word(word) if is(at - 1, "as") && !from => {
                aliases.push(word);
                (1, word.to_owned())
            }
            Token::Word(_) if is(at, "group") && open => {
                open = false;
                (1, ") GROUP".to_owned())
            }
            Token::Word(word) => {
                let known = WORDS.iter().any(|w| w.eq_ignore_ascii_case(word))
                    || aliases.iter().any(|a| a.eq_ignore_ascii_case(word));
                if !known || sign(at + 1, ".") {
                    return None;
                }
                (1, word.to_owned())
            }
            // `*` is every column, `;` may be followed by another statement.
            Token::Other("*") => return None,
            Token::Other(";") if at + 1 < tokens.len() => return None,
            Token::Other(text) => (1, text.to_owned()),
        };
        faster.push(' ');
        faster.push_str(&text);
        at += taken;
    }
    // An alias may hide a column that only one of the tables has, and the other way about.
    let columns = || {
        crate::schema::Table::Classes
            .column_names()
            .chain(crate::schema::Table::Objects.column_names())
    };
    let hides = aliases
        .iter()
        .any(|a| columns().any(|c| c.eq_ignore_ascii_case(a)));
    (from && !open && !hides).then_some(faster)
}

/// The tokens of a statement; `None` where there are comments, quoted names or parameters.
fn tokens(sql: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = sql.trim();
    while let Some(first) = rest.chars().next() {
        let length = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (end, is_name) = match first {
            'a'..='z' | 'A'..='Z' | '_' => (length(&is_word), true),
            '0'..='9' => (length(&|c| is_word(c) || c == '.'), false),
            '\'' => (1 + rest[1..].find('\'')? + 1, false),
            '<' | '>' | '=' | '!' => (length(&|c| "<>=!".contains(c)), false),
            '(' | ')' | ',' | '*' | '+' | ';' | '.' | '%' => (1, false),
            '-' | '/' if !rest[1..].starts_with(['-', '*']) => (1, false),
            _ => return None,
        };
        let (token, left) = rest.split_at(end);
        tokens.push(match is_name {
            true => Token::Word(token),
            false => Token::Other(token),
        });
        // A quote in a text is written twice, which would be two texts here.
        if first == '\'' && left.starts_with('\'') {
            return None;
        }
        rest = left.trim_start();
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_class_are_asked_of_classes() {
        assert_eq!(
            from_classes("select class, count(*) as n, sum(shallow_bytes) from objects group by class order by n").unwrap(),
            "SELECT class , sum(objects) as n , sum(shallow_bytes) FROM classes WHERE objects > 0 group by class order by n"
        );
        assert_eq!(
            from_classes("SELECT class FROM before.objects WHERE class like 'a' or class = 'b' GROUP BY class;").unwrap(),
            "SELECT class FROM before.classes WHERE objects > 0 AND ( class like 'a' or class = 'b' ) GROUP BY class ;"
        );
    }

    #[test]
    fn all_else_is_left() {
        for sql in [
            "select class, count(*) from objects",
            "select class, count(*) from objects group by class, root",
            "select class, count(*) from objects group by class || 'x'",
            "select class, count(*) from objects where length > 3 group by class",
            "select class, sum(retained_bytes) from objects group by class",
            "select class, sum(shallow_bytes) from objects, roots group by class",
            "select class, sum(shallow_bytes) from objects o group by class",
            "select class, count(length) from objects group by class",
            "select class, sum(shallow_bytes) from strings group by class",
            "select class, id from objects group by class",
            "select class, count(*) as length from objects group by class having length > 3",
            "select class, count(*) as objects from objects group by class",
            "select class, count(*) from objects group by class union select 1, 2",
            "select class, count(*) from (select * from objects) group by class",
            "select class, count(*) -- of all\nfrom objects group by class",
            "select class, count(*) from objects where class = 'it''s' group by class",
            "select class, count(*) from objects group by class; select 2",
            "select class, *, count(*) from objects group by class",
            "select \"class\", count(*) from objects group by class",
            "",
        ] {
            assert_eq!(from_classes(sql), None, "{sql}");
        }
    }
}
