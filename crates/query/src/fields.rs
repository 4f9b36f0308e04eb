//! Finds the result columns of a query that contain object ids because they call the SQL function `field()` for a field
//! that stores references.
//!
//! SQLite does not report the type of a function's result. So this module finds calls of `field()` in the text of the
//! statement, and `field()` records for each field which kinds of values it returned.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::tokens::{Token, items, outside, tokens};

/// The kinds of values that `field()` has returned, by the name of the field.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldKinds(Arc<Mutex<HashMap<String, Returned>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Returned {
    references: bool,
    others: bool,
}

impl FieldKinds {
    pub(crate) fn record(&self, field: &str, is_reference: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = match all.get_mut(field) {
            Some(returned) => returned,
            None => all.entry(field.to_owned()).or_default(),
        };
        if is_reference {
            returned.references = true
        } else {
            returned.others = true
        }
    }

    /// True if `field()` returned references for the field named `field`. If the function also returned other values
    /// for this field, `is_object` decides whether a value is the id of an object.
    pub(crate) fn is_id(&self, field: &str, is_object: impl FnOnce() -> bool) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = all.get(field).copied().unwrap_or_default();
        returned.references && (!returned.others || is_object())
    }
}

/// Returns, for each of the `count` result columns, the name of the field that the column reads with `field()`. Returns
/// `None` for columns without such a call.
pub(crate) fn field_columns(sql: &str, count: usize) -> Vec<Option<String>> {
    let mut columns = vec![None; count];
    let all = tokens(sql);
    let Some(select) = outside(&all, |token| token.is("select")) else {
        return columns;
    };
    let list = &all[select + 1..];
    const ENDS: [&str; 7] = [
        "from",
        "where",
        "union",
        "except",
        "intersect",
        "order",
        "limit",
    ];
    let end = outside(list, |t| {
        ENDS.iter().any(|word| t.is(word)) || t == Token::Sign(";")
    });
    let mut list = &list[..end.unwrap_or(list.len())];
    if let [first, rest @ ..] = list
        && (first.is("distinct") || first.is("all"))
    {
        list = rest;
    }
    let items = items(list);
    let star = items
        .iter()
        .position(|item| item.last() == Some(&Token::Sign("*")));
    for (at, item) in items.iter().enumerate() {
        // A `*` expands to an unknown number of columns, so columns after it are counted from the end.
        let at = match star {
            Some(star) if at >= star => (count + at).checked_sub(items.len()),
            _ => Some(at),
        };
        if let Some(column) = at.and_then(|at| columns.get_mut(at)) {
            *column = field_call_name(item);
        }
    }
    columns
}

/// If a result column is a call of `field()`, returns the name of the field. The column may have an alias.
fn field_call_name(item: &[Token<'_>]) -> Option<String> {
    let [function, Token::Sign("("), rest @ ..] = item else {
        return None;
    };
    let end = closing_parenthesis(rest)?;
    let is_named = match &rest[end + 1..] {
        [] | [Token::Word(_) | Token::Double(_)] => true,
        [keyword, _] => keyword.is("as"),
        _ => false,
    };
    if !function.is("field") || !is_named {
        return None;
    }
    match items(&rest[..end]).get(1) {
        Some([Token::Single(name)]) => Some(name.replace("''", "'")),
        _ => None,
    }
}

/// Returns the index of the closing parenthesis. The matching opening parenthesis is just before `tokens`.
fn closing_parenthesis(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 1_usize;
    tokens.iter().position(|token| {
        match token {
            Token::Sign("(") => depth += 1,
            Token::Sign(")") => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_field_are_found() {
        let found = |sql: &str, count| -> Vec<String> {
            let columns = field_columns(sql, count).into_iter();
            columns.map(Option::unwrap_or_default).collect()
        };
        let sql = "select id, field(id, 'a') as x, FIELD(field(id, 'b'), 'c', 'after') y, field(id, 'd') + 1 from objects";
        assert_eq!(found(sql, 4), ["", "a", "c", ""]);
        let sql =
            "with c as (select field(id, 'a') from objects) select distinct field(id, 'b') from c";
        assert_eq!(found(sql, 1), ["b"]);
        let sql = "select field(id, 'a'), o.*, field(id, 'b') from objects o";
        assert_eq!(found(sql, 5), ["a", "", "", "", "b"]);
        assert_eq!(
            found(
                "select text(field(id, 'a')), field(id, class) from objects",
                2
            ),
            ["", ""]
        );
        assert_eq!(found("values (1)", 1), [""]);
    }
}
