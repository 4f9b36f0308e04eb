//! Tests that looking up rows returns the same rows as scanning the whole table.

use heapdiff_query::{Limits, run};

use crate::{Kept, ask, one, shop};

/// Comparisons that SQLite passes to tables. If a test writes `+` before the column, SQLite does not pass the
/// comparison to the table and scans all rows instead.
const WHERE: &[(&str, &str, &str)] = &[
    ("objects", "class", "= 'java.lang.String'"),
    ("objects", "class", "= 'no.such.Class'"),
    ("objects", "class", "like 'java.UTIL.%Map_Node'"),
    ("objects", "class", "like '%[]'"),
    ("objects", "class", "glob '*[bc]*te[]*'"),
    ("objects", "class", "glob 'java.*Node?'"),
    ("objects", "class", "regexp '^com\\.acme\\..*Line$'"),
    (
        "objects",
        "class",
        "in ('byte[]', 'int[]', 'java.lang.Class')",
    ),
    ("objects", "class", "= null"),
    ("objects", "class", "= 7"),
    ("objects", "class", "= 'BYTE[]' collate nocase"),
    ("objects", "shallow_bytes", "> 1000"),
    ("objects", "shallow_bytes", "between 100 and 200.5"),
    ("objects", "shallow_bytes", "< -1"),
    ("objects", "shallow_bytes", "= 24"),
    ("objects", "retained_bytes", ">= 5000"),
    ("objects", "retained_bytes", "< 17"),
    ("objects", "retained_bytes", "> '100'"),
    (
        "objects",
        "class_id",
        "= (select id from classes where class = 'java.lang.String')",
    ),
    (
        "objects",
        "dominator_id",
        "= (select id from objects order by retained_bytes desc limit 1)",
    ),
    ("objects", "id", "= (select max(id) from objects)"),
    (
        "objects",
        "id",
        "in (select target_id from refs where source_class = 'java.lang.Thread')",
    ),
    ("objects", "id", "= 1"),
    ("classes", "class", "like 'java.lang.%'"),
    ("classes", "id", "= (select max(id) from classes)"),
    ("refs", "source_class", "= 'java.lang.Thread'"),
    ("refs", "source_class", "like 'com.acme.%'"),
    ("refs", "target_class", "= 'byte[]'"),
    (
        "refs",
        "source_id",
        "= (select id from threads where name = 'main')",
    ),
    (
        "refs",
        "source_id",
        "= (select id from objects where class like '%Node[]' order by length desc limit 1)",
    ),
    (
        "refs",
        "target_id",
        "= (select id from threads where name = 'main')",
    ),
    ("refs", "target_id", "= 12345"),
    ("strings", "id", "= (select max(id) from strings)"),
    (
        "strings",
        "id",
        "= (select id from threads where name = 'main')",
    ),
    ("strings", "retained_bytes", "> 100"),
    (
        "objects",
        "id",
        "in (select id from strings union select 1 union select null union select 'x')",
    ),
    (
        "objects",
        "dominator_id",
        "in (select id from objects order by retained_bytes desc limit 9)",
    ),
    (
        "objects",
        "class_id",
        "in (select id from classes where class like 'java.util.%')",
    ),
    (
        "classes",
        "id",
        "in (select loader_id from classes union select id from classes limit 99)",
    ),
    (
        "classes",
        "class",
        "in ('byte[]', 'java.lang.String', null, 7)",
    ),
    (
        "refs",
        "source_id",
        "in (select id from objects where class = 'java.util.HashMap')",
    ),
    (
        "refs",
        "target_id",
        "in (select id from objects where class = 'java.util.HashMap')",
    ),
    ("refs", "target_class", "in ('byte[]', 'java.lang.String')"),
    (
        "strings",
        "id",
        "in (select target_id from refs where source_class = 'com.acme.shop.Product')",
    ),
];

#[test]
fn lookups_and_scans_give_the_same_rows() {
    let mut empty = 0;
    for (table, column, comparison) in WHERE {
        let keys = match *table {
            "refs" => "count(*), sum(source_id % 9973 * (target_id % 9967)), count(distinct via)",
            _ => "count(*), sum(id % 9973 * 7), sum(shallow_bytes)",
        };
        let fast = ask(
            shop(),
            &format!("select {keys} from {table} where {column} {comparison}"),
        );
        let slow = ask(
            shop(),
            &format!("select {keys} from {table} where +{column} {comparison}"),
        );
        // Before SQLite compares a string with a column of numbers, it converts the string to a number. It does not do
        // this for an expression such as `+shallow_bytes`, so the two results may differ.
        if !comparison.contains('\'') || !column.ends_with("bytes") {
            assert_eq!(fast, slow, "{table}.{column} {comparison}");
        }
        empty += usize::from(fast[0][0] == "0");
    }
    // At most nine of the comparisons find no rows.
    assert!(empty <= 9, "{empty}");
}

#[test]
fn comparisons_reach_the_tables() {
    for (sql, plan) in [
        ("select * from objects where id = 5", "0="),
        (
            "select * from objects where class = 'a' and retained_bytes > 7",
            "1=4>",
        ),
        ("select * from refs where source_id = 5", "0="),
        (
            "select * from objects o join refs r on r.source_id = o.id where o.class = 'java.lang.Thread'",
            "0=",
        ),
        (
            "select * from refs r join objects o on o.id = r.target_id where r.source_class = 'x'",
            "0=",
        ),
    ] {
        let steps = ask(shop(), &format!("explain query plan {sql}"));
        let last = steps.last().unwrap().last().unwrap();
        assert!(last.ends_with(&format!(":{plan}")), "{sql}: {steps:?}");
    }
    // This query needs no sorting.
    let steps = ask(
        shop(),
        "explain query plan select class, count(*) from objects group by class",
    );
    assert_eq!(steps.len(), 1, "{steps:?}");
}

/// A row that matches both terms of an `OR` is returned only once. SQLite recognizes the row by its row id, which is
/// the same in the searches for both terms.
#[test]
fn terms_of_an_or_are_looked_up_and_overlap() {
    let main = one(shop(), "select id from threads where name = 'main'");
    for (table, keys, terms) in [
        (
            "objects",
            "count(*), sum(id % 9973)",
            format!("id = {main} or class = 'java.lang.Thread'"),
        ),
        (
            "objects",
            "count(*), sum(id % 9973)",
            "class = 'int[]' or class in ('long[]', 'int[]') or class_id = 7".to_owned(),
        ),
        (
            "classes",
            "count(*), sum(objects)",
            "class = 'int[]' or class like '%t[]'".to_owned(),
        ),
        (
            "refs",
            "count(*), sum(target_id % 9967)",
            format!("source_id = {main} or source_class = 'java.lang.Thread'"),
        ),
        (
            "strings",
            "count(*), sum(length)",
            "id = (select min(id) from strings) or id in (select id from strings limit 5)"
                .to_owned(),
        ),
    ] {
        let fast = ask(shop(), &format!("select {keys} from {table} where {terms}"));
        let slow = ask(
            shop(),
            &format!("select {keys} from {table} where +({terms})"),
        );
        assert_eq!(fast, slow, "{table} {terms}");
        assert_ne!(fast[0][0], "0", "{table} {terms}");
    }
}

#[test]
fn all_values_of_an_in_are_one_lookup() {
    for (sql, plan) in [
        ("select * from objects where id in (5, 6, 7)", "0i"),
        ("select * from refs where target_id in (5, 6, 7)", "6i"),
        ("select * from refs where source_id in (5, 6, 7)", "0i"),
        ("select * from strings where id in (5, 6, 7)", "0i"),
        ("select * from objects where class in ('a', 'b')", "1i"),
    ] {
        let steps = ask(shop(), &format!("explain query plan {sql}"));
        let scan = steps[0].last().unwrap();
        assert!(scan.ends_with(&format!(":{plan}")), "{sql}: {steps:?}");
    }
}

/// Sums computed in one pass equal those that SQLite computes row by row.
#[test]
fn sums_equal_those_of_objects() {
    for heap in [shop(), crate::sampled()] {
        for (columns, rest) in [
            ("class, count(*), sum(shallow_bytes)", "group by class"),
            ("count(*), class", "group by class having count(*) > 50"),
            (
                "sum(shallow_bytes), class",
                "group by class order by class desc limit 7",
            ),
            (
                "count(*), sum(retained_bytes), avg(length), total(length)",
                "",
            ),
            (
                "class, avg(retained_bytes), min(length), max(retained_objects), count(length)",
                "group by 1 order by 2 desc, 1",
            ),
            (
                "class_id, reachable, sum(retained_bytes) as retained_bytes, count(retained_bytes)",
                "group by class_id, 2 order by retained_bytes desc, class_id, reachable limit 40 offset 3",
            ),
            (
                "reachable, round(avg(shallow_bytes), 2) as size, max(shallow_bytes) * 2, min(shallow_bytes)",
                "group by reachable order by size",
            ),
            ("class", "group by class order by class"),
        ] {
            for filter in [
                "",
                "where class like 'java.%' or class = 'byte[]'",
                "where not reachable",
                "where class = 'no.such.Class'",
            ] {
                let sql = |from: &str| format!("select {columns} from {from} {filter} {rest}");
                let fast = ask(heap, &sql("objects"));
                // If the table has an alias, the statement is not rewritten.
                assert_eq!(fast, ask(heap, &sql("objects as o")), "{}", sql("objects"));
            }
        }
    }
}

/// The table `object_sums` is internal: it is not listed, and no statement of a user can name it.
#[test]
fn the_table_of_sums_is_hidden() {
    let tables = ask(shop(), "select name from sqlite_master");
    assert!(
        tables.iter().all(|row| row[0] != "object_sums"),
        "{tables:?}"
    );
    assert!(heapdiff_query::check("select objects from object_sums").is_err());
    let sum = "select sum(objects) from object_sums";
    assert!(heapdiff_query::run(shop(), sum, Limits::default(), &mut Kept::default()).is_err());
}

#[test]
fn the_number_of_rows_is_limited() {
    let mut kept = Kept::default();
    let limits = Limits {
        rows: Some(3),
        ..Limits::default()
    };
    let outcome = run(
        shop(),
        "select id, count(*) over () from threads",
        limits,
        &mut kept,
    )
    .unwrap();
    assert_eq!((outcome.rows, outcome.more, kept.rows.len()), (3, true, 3));
    let all = one(shop(), "select count(*) from threads").parse().unwrap();
    let limits = Limits {
        rows: Some(all),
        ..Limits::default()
    };
    let outcome = run(
        shop(),
        "select id from threads",
        limits,
        &mut Kept::default(),
    )
    .unwrap();
    assert_eq!((outcome.rows, outcome.more), (all, false));
}

#[test]
fn columns_of_tables_have_types() {
    let mut kept = Kept::default();
    let sql = "select id, o.class as c, reachable, length, count(*) as n from objects o limit 1";
    run(shop(), sql, Limits::default(), &mut kept).unwrap();
    let types: Vec<_> = kept
        .columns
        .iter()
        .map(|c| (&*c.name, c.kind.map(|k| k.name())))
        .collect();
    let expected = [
        ("id", Some("id")),
        ("c", Some("text")),
        ("reachable", Some("boolean")),
        ("length", Some("integer")),
        ("n", None),
    ];
    assert_eq!(types, expected);
    assert_eq!(heapdiff_query::check(sql).unwrap(), kept.columns);
}
