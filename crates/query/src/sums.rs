//! Rewrites statements with sums over `objects` to use the table `object_sums`. It has at most two rows for each class,
//! so such statements are faster.
//!
//! A statement is rewritten only if this module knows every word in it. SQLite runs any other statement unchanged.

use crate::schema::Table;

/// Columns that both `objects` and `object_sums` have. The rows of `object_sums` are grouped by these columns.
const GROUPS: [&str; 3] = ["class", "class_id", "reachable"];

/// Columns of `objects` with sums, in the order of `object_sums`.
const SUMMED: [&str; 4] = [
    "shallow_bytes",
    "retained_bytes",
    "retained_objects",
    "length",
];

/// Words that have the same meaning in the original and in the rewritten statement.
const WORDS: [&str; 21] = [
    "asc", "desc", "nulls", "first", "last", "offset", "and", "or", "not", "between", "like",
    "glob", "regexp", "in", "is", "null", "true", "false", "escape", "round", "abs",
];

/// A token of a statement: a word, a number, a string or a punctuation character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'s> {
    Word(&'s str),
    Other(&'s str),
}

impl<'s> Token<'s> {
    fn is(self, word: &str) -> bool {
        matches!(self, Token::Word(w) if w.eq_ignore_ascii_case(word))
    }

    /// Returns the element of `words` that equals the token, if any.
    fn find_in_words<'w>(self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.is(word))
    }

    const fn text(self) -> &'s str {
        match self {
            Token::Word(text) | Token::Other(text) => text,
        }
    }
}

/// Translates a statement over `objects` to a statement over `object_sums` with the same result. Returns `None` unless
/// the statement has the form `select ... from objects [where ...] [group by ...] [having ...] [order by ...] [limit
/// ...]`, with only counts, sums, averages, minima and maxima of [`SUMMED`] columns, grouped by [`GROUPS`] columns.
pub(crate) fn from_sums(sql: &str) -> Option<String> {
    let tokens = tokens(sql)?;
    let parts = Parts::from_tokens(&tokens)?;
    let grouped = parts.grouped()?;
    let aliases = aliases(parts.select)?;
    let words = Words {
        grouped: &grouped,
        aliases: &aliases,
    };
    let mut faster = Faster::default();
    faster.push("SELECT");
    let sums_up = faster.part(parts.select, &words, false)?;
    if !sums_up && parts.group.is_empty() {
        return None;
    }
    faster.push("FROM");
    faster.push(&parts.from);
    if !parts.filter.is_empty() {
        faster.push("WHERE");
        // The condition after `where` may use grouping columns, but not summed columns.
        let words = Words {
            grouped: &GROUPS,
            aliases: &[],
        };
        if faster.part(parts.filter, &words, false)? {
            return None;
        }
    }
    if !parts.group.is_empty() {
        faster.push("GROUP BY");
        let terms: Vec<&str> = parts.group.iter().map(|t| t.text()).collect();
        faster.push(&terms.join(" "));
    }
    let hidden = Words {
        grouped: &grouped,
        aliases: &aliases
            .iter()
            .copied()
            .filter(|a| !is_column(a))
            .collect::<Vec<_>>(),
    };
    if !parts.having.is_empty() {
        faster.push("HAVING");
        faster.part(parts.having, &hidden, false)?;
    }
    if !parts.order.is_empty() {
        faster.push("ORDER BY");
        faster.part(parts.order, &words, true)?;
    }
    if !parts.limit.is_empty() {
        faster.push("LIMIT");
        faster.part(parts.limit, &hidden, false)?;
    }
    Some(faster.text)
}

/// Returns true if `objects` or `object_sums` has a column with this name. If a column and an alias have the same name,
/// SQLite reads the name as the column. Exception: a whole term of `order by` is read as the alias.
fn is_column(word: &str) -> bool {
    let columns = Table::Objects.column_names();
    columns
        .chain(Table::ObjectSums.column_names())
        .any(|c| c.eq_ignore_ascii_case(word))
}

/// The clauses of a statement, without their keywords.
#[derive(Debug)]
struct Parts<'t, 's> {
    select: &'t [Token<'s>],
    /// Name of the table `object_sums`. Like the original table name, it may include the name of a dump.
    from: String,
    filter: &'t [Token<'s>],
    group: &'t [Token<'s>],
    having: &'t [Token<'s>],
    order: &'t [Token<'s>],
    limit: &'t [Token<'s>],
}

impl<'t, 's> Parts<'t, 's> {
    fn from_tokens(tokens: &'t [Token<'s>]) -> Option<Self> {
        let tokens = match tokens.split_last() {
            Some((Token::Other(";"), rest)) => rest,
            _ => tokens,
        };
        let (first, mut rest) = tokens.split_first()?;
        if !first.is("select") {
            return None;
        }
        // Returns the tokens before the next of the given keywords.
        let mut until = |words: &[&str]| {
            let end = rest.iter().position(|t| t.find_in_words(words).is_some());
            let (part, left) = rest.split_at(end.unwrap_or(rest.len()));
            rest = left;
            part
        };
        const CLAUSES: [&str; 5] = ["where", "group", "having", "order", "limit"];
        let select = until(&["from"]);
        let from = match until(&CLAUSES) {
            [_, table] if table.is("objects") => Table::ObjectSums.name().to_owned(),
            [_, Token::Word(schema), Token::Other("."), table] if table.is("objects") => {
                format!("{schema}.{}", Table::ObjectSums.name())
            }
            _ => return None,
        };
        let mut clause = |words: &[&str], later: &[&str]| {
            let begins = rest.first().is_some_and(|t| t.is(words[0]));
            if !begins {
                return Some(&rest[..0]);
            }
            if words.len() > 1 && !rest.get(1)?.is(words[1]) {
                return None;
            }
            let body = &rest[words.len()..];
            let end = body.iter().position(|t| t.find_in_words(later).is_some());
            let (part, left) = body.split_at(end.unwrap_or(body.len()));
            rest = left;
            (!part.is_empty()).then_some(part)
        };
        let parts = Self {
            select,
            from,
            filter: clause(&["where"], &CLAUSES)?,
            group: clause(&["group", "by"], &CLAUSES)?,
            having: clause(&["having"], &CLAUSES)?,
            order: clause(&["order", "by"], &CLAUSES)?,
            limit: clause(&["limit"], &CLAUSES)?,
        };
        let is_whole = rest.is_empty() && (parts.having.is_empty() || !parts.group.is_empty());
        is_whole.then_some(parts)
    }

    /// Returns the columns in `group by`.
    fn grouped(&self) -> Option<Vec<&'static str>> {
        let mut grouped = Vec::new();
        for (at, token) in self.group.iter().enumerate() {
            if at % 2 == 1 {
                if *token != Token::Other(",") {
                    return None;
                }
                continue;
            }
            grouped.push(match token {
                Token::Word(_) => token.find_in_words(&GROUPS)?,
                Token::Other(number) => {
                    let place: usize = number.parse().ok()?;
                    match items(self.select).nth(place.checked_sub(1)?)? {
                        [only] => only.find_in_words(&GROUPS)?,
                        [only, keyword, Token::Word(_)] if keyword.is("as") => {
                            only.find_in_words(&GROUPS)?
                        }
                        _ => return None,
                    }
                }
            });
        }
        (self.group.is_empty() || self.group.len() % 2 == 1).then_some(grouped)
    }
}

/// Splits tokens at commas outside of parentheses.
fn items<'t, 's>(tokens: &'t [Token<'s>]) -> impl Iterator<Item = &'t [Token<'s>]> {
    let mut depth = 0_usize;
    tokens.split(move |token| {
        match token {
            Token::Other("(") => depth += 1,
            Token::Other(")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Other(",")
    })
}

/// Returns the aliases in the result list. Returns `None` if an alias has the name of a grouping column, because such a
/// statement cannot be rewritten.
fn aliases<'s>(select: &[Token<'s>]) -> Option<Vec<&'s str>> {
    let pairs = select.windows(2).filter(|pair| pair[0].is("as"));
    let names = pairs.map(|pair| match pair[1] {
        Token::Word(name) if pair[1].find_in_words(&GROUPS).is_none() => Some(name),
        _ => None,
    });
    names.collect()
}

/// The grouping columns and the aliases of the statement. Its `having` and `order by` clauses may use them.
struct Words<'w> {
    grouped: &'w [&'w str],
    aliases: &'w [&'w str],
}

/// The text of the rewritten statement.
#[derive(Default)]
struct Faster {
    text: String,
}

impl Faster {
    fn push(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Translates a clause of the SQL statement and adds it. Returns true if the clause has an aggregate function such
    /// as `sum`, false if it has none, and `None` if the clause has an unknown word or sign.
    ///
    /// An alias with the name of a column is accepted only as a whole term of `order by`. Elsewhere SQLite would read
    /// the name as the column, so this function treats it as an unknown word.
    fn part(&mut self, part: &[Token<'_>], words: &Words<'_>, is_order: bool) -> Option<bool> {
        let (mut at, mut sums_up) = (0, false);
        while let Some(&token) = part.get(at) {
            let sign = |at: usize, text: &str| part.get(at) == Some(&Token::Other(text));
            if let Token::Word(function) = token
                && sign(at + 1, "(")
                && sign(at + 3, ")")
                && let Some(sum) = sum(function, part[at + 2])
            {
                sums_up = true;
                self.push(&sum);
                at += 4;
                continue;
            }
            match token {
                Token::Word(_) if token.is("as") && at + 1 < part.len() => {
                    self.push("AS");
                    at += 1;
                    self.push(part[at].text());
                }
                Token::Word(word) => {
                    let is_alias = words.aliases.iter().any(|a| a.eq_ignore_ascii_case(word));
                    let before = at == 0 || sign(at - 1, ",");
                    let after = part.get(at + 1).is_none_or(|next| {
                        *next == Token::Other(",")
                            || next.find_in_words(&["asc", "desc", "nulls"]).is_some()
                    });
                    let is_known = token.find_in_words(&WORDS).is_some()
                        || token.find_in_words(words.grouped).is_some()
                        || is_alias && (!is_column(word) || is_order && before && after);
                    if !is_known || sign(at + 1, ".") {
                        return None;
                    }
                    self.push(word);
                }
                // Do not rewrite statements with `*` or `;`. A `*` means every column, unless it multiplies. After `;`
                // there may be another statement.
                Token::Other("*") if at == 0 || sign(at - 1, ",") || sign(at - 1, "(") => {
                    return None;
                }
                Token::Other(";" | ".") => return None,
                Token::Other(text) => self.push(text),
            }
            at += 1;
        }
        Some(sums_up)
    }
}

/// Translates an aggregate function of a column to SQL that adds up partial results. Example: `avg(x)` becomes
/// `1.0 * sum(x_sum) / sum(x_count)`.
fn sum(function: &str, of: Token<'_>) -> Option<String> {
    let is = |name: &str| function.eq_ignore_ascii_case(name);
    if is("count") && of == Token::Other("*") {
        return Some("coalesce(sum(objects), 0)".to_owned());
    }
    let column = of.find_in_words(&SUMMED)?;
    Some(match () {
        () if is("count") => format!("coalesce(sum({column}_count), 0)"),
        () if is("sum") => format!("sum({column}_sum)"),
        () if is("total") => format!("total({column}_sum)"),
        () if is("avg") => format!("(1.0 * sum({column}_sum) / sum({column}_count))"),
        () if is("min") => format!("min({column}_min)"),
        () if is("max") => format!("max({column}_max)"),
        () => return None,
    })
}

/// Splits a statement into tokens. Returns `None` if it has comments, quoted names or parameters.
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
        tokens.push(if is_name {
            Token::Word(token)
        } else {
            Token::Other(token)
        });
        // SQL writes a quote inside a string twice (`'it''s'`). This function would split such a string into two
        // strings, so the statement is not rewritten.
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
    fn sums_are_read_from_the_table_of_sums() {
        for (sql, faster) in [
            (
                "select class, count(*) as n, sum(shallow_bytes) from objects group by class order by n",
                "SELECT class , coalesce(sum(objects), 0) AS n , sum(shallow_bytes_sum) FROM object_sums \
                 GROUP BY class ORDER BY n",
            ),
            (
                "SELECT class FROM before.objects WHERE class like 'a' or class = 'b' GROUP BY class;",
                "SELECT class FROM before.object_sums WHERE class like 'a' or class = 'b' GROUP BY class",
            ),
            (
                "select avg(length), max(retained_bytes) * 2 from objects where not reachable",
                "SELECT (1.0 * sum(length_sum) / sum(length_count)) , max(retained_bytes_max) * 2 \
                 FROM object_sums WHERE not reachable",
            ),
            (
                "select reachable, class_id as c, sum(shallow_bytes) as shallow_bytes from objects \
                 group by 1, 2 having count(length) > 3 order by shallow_bytes desc, 1 limit 5 offset 2",
                "SELECT reachable , class_id AS c , sum(shallow_bytes_sum) AS shallow_bytes FROM object_sums \
                 GROUP BY 1 , 2 HAVING coalesce(sum(length_count), 0) > 3 ORDER BY shallow_bytes desc , 1 \
                 LIMIT 5 offset 2",
            ),
        ] {
            assert_eq!(from_sums(sql).as_deref(), Some(faster), "{sql}");
        }
    }

    #[test]
    fn other_statements_are_unchanged() {
        for sql in [
            "select class, count(*) from objects",
            "select class from objects",
            "select class, count(*) from objects group by class, root",
            "select class, count(*) from objects group by class || 'x'",
            "select class, count(*) from objects group by class like 'x'",
            "select class, count(*) from objects group by 2",
            "select class, count(*) from objects group by 3",
            "select class, count(*) from objects group by 0",
            "select class, count(*) from objects group by",
            "select class, class_id, count(*) from objects group by class",
            "select class, max(retained_bytes) from objects group by reachable",
            "select reachable from objects group by class order by reachable",
            "select class, count(*) from objects where length > 3 group by class",
            "select class, count(*) from objects where count(*) > 3 group by class",
            "select count(*) as n from objects where n > 3",
            "select class, sum(id) from objects group by class",
            "select class, sum(distinct length) from objects group by class",
            "select class, sum(length + 1) from objects group by class",
            "select class, group_concat(length) from objects group by class",
            "select class, sum(shallow_bytes) from objects, roots group by class",
            "select class, sum(shallow_bytes) from objects o group by class",
            "select class, sum(objects.length) from objects group by class",
            "select objects.class, count(*) from objects group by class",
            "select class, sum(shallow_bytes) from strings group by class",
            "select class, id from objects group by class",
            "select class, count(*) as length from objects group by class having length > 3",
            "select class, count(*) as length from objects group by class order by length + 1",
            "select class, count(*) as objects from objects group by class having objects > 3",
            "select length, count(*) as class from objects group by class",
            "select count(*) as class from objects group by class",
            "select count(*) from objects having count(*) > 1",
            "select class, count(*) from objects group by class union select 1, 2",
            "select class, count(*) from (select * from objects) group by class",
            "select class, count(*) -- of all\nfrom objects group by class",
            "select class, count(*) from objects where class = 'it''s' group by class",
            "select class, count(*) from objects group by class; select 2",
            "select class, *, count(*) from objects group by class",
            "select \"class\", count(*) from objects group by class",
            "select distinct count(*) from objects",
            "select count(*) over () from objects",
            "select count(*) from objects where class in (select class from roots)",
            "select",
            "select count(*)",
            "",
        ] {
            assert_eq!(from_sums(sql), None, "{sql}");
        }
    }
}
