//! Tests of rejected statements and their messages.

use std::time::Duration;

use heapdiff_query::{Error, Limits, check, run};

use crate::{Kept, shop};

#[test]
fn only_reading_is_allowed() {
    let folder = std::env::temp_dir();
    let attach = format!("attach '{}' as x", folder.join("heapdiff-x.db").display());
    for sql in [
        "delete from objects",
        "update objects set id = 1",
        "insert into objects (id) values (1)",
        "create table t(x)",
        "create temp table t as select * from threads",
        "create view v as select 1",
        "create virtual table v using objects",
        "drop table objects",
        "pragma cache_size = 7",
        "pragma table_list",
        "select * from pragma_database_list",
        "vacuum into '/tmp/heapdiff-x.db'",
        "select load_extension('x')",
        "begin",
        "analyze",
        "reindex",
        &*attach,
    ] {
        for done in [
            check(sql).map(|_| ()),
            run(shop(), sql, Limits::default(), &mut Kept::default()).map(|_| ()),
        ] {
            let text = done
                .err()
                .unwrap_or_else(|| panic!("{sql} is allowed"))
                .to_string();
            let known = [
                "only SELECT is allowed",
                "no such",
                "not authorized",
                "a query must be exactly one statement",
            ];
            assert!(known.iter().any(|k| text.starts_with(k)), "{sql}: {text}");
        }
    }
    assert!(!folder.join("heapdiff-x.db").exists());
}

#[test]
fn mistakes_are_reported_with_their_position() {
    let wrong = |sql: &str| match check(sql).unwrap_err() {
        Error::Sql {
            message,
            line,
            column,
            text,
            hint,
        } => (message, line, column, text, hint),
        other => panic!("{other}"),
    };
    let (message, line, column, text, hint) = wrong("select id,\n  größe\nfrom objects");
    assert_eq!(
        (&*message, line, column, &*text),
        ("no such column: größe", 2, 3, "  größe")
    );
    assert!(hint.unwrap().starts_with("columns of objects: id, class, "));
    let (message, line, column, _, hint) = wrong("select * from object");
    assert_eq!((&*message, line), ("no such table: object", 1));
    assert!(column >= 1);
    assert_eq!(
        hint.unwrap(),
        "tables: objects, classes, refs, roots, strings, threads, frames, samples, allocated, counted_sites"
    );
    let (message, _, column, ..) = wrong("selec 1");
    assert_eq!((&*message, column), ("near \"selec\": syntax error", 1));
    let (.., hint) = wrong("select id from objects where class = \"byte[]\"");
    assert!(hint.unwrap().starts_with("strings need single quotes"));
    for (sql, text) in [
        (
            "",
            "a query must be exactly one statement, but this query has none",
        ),
        (
            "-- nothing",
            "a query must be exactly one statement, but this query has none",
        ),
        (
            "select 1; select 2",
            "a query must be exactly one statement, but this query has several",
        ),
    ] {
        assert_eq!(check(sql).unwrap_err().to_string(), text);
    }
    let failed = run(
        shop(),
        "select id from objects where class regexp '('",
        Limits::default(),
        &mut Kept::default(),
    );
    let failed = failed.unwrap_err().to_string();
    assert!(
        failed.contains("REGEXP '(': unclosed group") && !failed.contains('\n'),
        "{failed}"
    );
}

#[test]
fn oql_is_recognized_if_it_is_not_sql() {
    let told = |text: &str| match check(text) {
        Err(Error::Oql { sql }) => sql,
        other => panic!("{text}: {other:?}"),
    };
    let sql = told("SELECT * FROM java.util.HashMap");
    let expected = "select * from objects where class = 'java.util.HashMap'";
    assert_eq!(sql.as_deref(), Some(expected));
    // If SQLite would reject the translation of an OQL statement, the message does not show the translation.
    assert_eq!(
        told("select s.value.length + from java.lang.String s"),
        None
    );
    assert_eq!(told("select heap.x(s) from java.lang.String s"), None);
    // A statement in SQL is not treated as OQL, even if it has a mistake. So the error is [`Error::Sql`], not
    // [`Error::Oql`].
    assert!(check("select * from main.objects").is_ok());
    assert!(matches!(
        check("select * from java.Foo"),
        Err(Error::Sql { .. })
    ));
}

#[test]
fn a_query_that_takes_too_long_is_ended() {
    let endless =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let limits = Limits {
        time: Some(Duration::from_millis(20)),
        ..Limits::default()
    };
    let ended = run(shop(), endless, limits, &mut Kept::default());
    assert!(matches!(ended, Err(Error::Time { limit }) if Some(limit) == limits.time));
    let limits = Limits {
        time: Some(Duration::from_secs(600)),
        ..Limits::default()
    };
    let short = run(
        shop(),
        "select count(*) from classes",
        limits,
        &mut Kept::default(),
    );
    assert_eq!(short.unwrap().rows, 1);
}
