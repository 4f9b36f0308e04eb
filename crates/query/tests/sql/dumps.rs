//! Tests of queries over several dumps, and of commands that list tables.

use heapdiff_query::{Dumps, Error, Limits, check, check_for_dumps, check_names, run_on_dumps};

use crate::{Kept, ask, one, opened, sampled, shop};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn ask_both(dumps: &Dumps, sql: &str) -> Vec<Vec<String>> {
    let mut kept = Kept::default();
    run_on_dumps(dumps, sql, Limits::default(), &mut kept).unwrap_or_else(|e| panic!("{sql}: {e}"));
    kept.rows
}

#[test]
fn dumps_have_their_names() {
    let before = opened("before.hprof.gz");
    let dumps = Dumps::named(vec![
        ("before".to_owned(), before.clone()),
        ("after".to_owned(), shop().clone()),
    ])
    .unwrap();
    let sql = "select count(*), sum(shallow_bytes) from objects";
    let old = ask(&before, sql);
    let new = ask(shop(), sql);
    assert_ne!(old, new);
    // A table name without the name of a dump refers to the first dump.
    assert_eq!(ask_both(&dumps, sql), old);
    assert_eq!(
        ask_both(&dumps, &sql.replace("objects", "before.objects")),
        old
    );
    assert_eq!(
        ask_both(&dumps, &sql.replace("objects", "After.objects")),
        new
    );
    let grown = ask_both(
        &dumps,
        "select a.class, a.objects - b.objects from after.classes a join before.classes b on b.id = a.id \
         where a.class = 'com.acme.shop.Session'",
    );
    let sessions = "select objects from classes where class = 'com.acme.shop.Session'";
    let count = |heap| one(heap, sessions).parse::<i64>().unwrap();
    let expected = count(shop()) - count(&before);
    assert_eq!(grown[0][1], expected.to_string());
    // Sums by class come from the dump that the statement names.
    let sums = "select class, count(*) from after.objects group by class";
    assert_eq!(
        ask_both(&dumps, sums),
        ask(shop(), "select class, count(*) from objects group by class")
    );
    // Functions read the first dump, unless their last argument names another one.
    let text = "select text(id, 'after') from after.strings where id = (select max(id) from after.strings)";
    let value = "select value from strings where id = (select max(id) from strings)";
    assert_eq!(ask_both(&dumps, text), ask(shop(), value));
    let failed = run_on_dumps(
        &dumps,
        "select text(1, 'x')",
        Limits::default(),
        &mut Kept::default(),
    );
    let failed = failed.unwrap_err().to_string();
    assert!(
        failed.contains("unknown dump `x`; the dumps are before, after"),
        "{failed}"
    );
}

#[test]
fn invalid_names_of_dumps_are_refused() {
    for bad in [
        "", "1st", "a b", "main", "TEMP", "select", "sqlite_x", "größe", "a;b",
    ] {
        let failed = check_names(&names(&[bad])).unwrap_err();
        assert!(
            matches!(&failed, Error::Name { name, .. } if name == bad),
            "{bad}: {failed}"
        );
    }
    assert!(matches!(
        check_names(&names(&["a", "A"])),
        Err(Error::Name { .. })
    ));
    let many: Vec<String> = (0..11).map(|n| format!("d{n}")).collect();
    assert!(matches!(
        check_names(&many),
        Err(Error::TooManyDumps {
            dumps: 11,
            most: 10
        })
    ));
    check_for_dumps(&many[..10], "select * from d9.objects").unwrap();
    check_names(&names(&["before", "after", "_x9"])).unwrap();
    let failed = check_for_dumps(&names(&["a", "b"]), "select * from c.objects").unwrap_err();
    let Error::Sql {
        hint: Some(hint), ..
    } = failed
    else {
        panic!("{failed}");
    };
    assert!(hint.ends_with("; dumps: a, b"), "{hint}");
}

#[test]
fn tables_and_columns_are_listed() {
    let tables = ask(shop(), ".tables");
    assert_eq!(tables[0], ["objects", "every object"]);
    let in_schema = "select name from sqlite_master where type = 'table'";
    let listed: Vec<_> = ask(shop(), in_schema).into_iter().flatten().collect();
    let told: Vec<_> = tables.iter().map(|row| row[0].clone()).collect();
    assert_eq!(listed, told);
    for table in &told {
        // The result has the same column names as a SELECT.
        let columns: Vec<_> = ask(shop(), &format!("describe {table};"))
            .into_iter()
            .map(|row| (row[1].clone(), row[2].clone()))
            .collect();
        let selected = check(&format!("select * from {table}")).unwrap();
        let selected: Vec<_> = selected
            .into_iter()
            .map(|c| (c.name, c.kind.unwrap().name().to_owned()))
            .collect();
        assert_eq!(columns, selected);
        let own = format!("select sql from sqlite_master where name = '{table}'");
        let own = one(sampled(), &own);
        assert!(columns.iter().all(|c| own.contains(&c.0)), "{own}");
    }
    assert_eq!(
        ask(shop(), ".schema").len(),
        told.iter()
            .map(|t| ask(shop(), &format!(".schema {t}")).len())
            .sum::<usize>()
    );
    let dumps = names(&["a", "b"]);
    check_for_dumps(&dumps, "describe b.refs").unwrap();
    for (sql, text) in [
        (".quit", "there is no command `.quit`"),
        ("describe", "there is no command `describe`"),
        (".schema a b", "there is no command `.schema a b`"),
        (
            "describe b.objects",
            "there is no table `b.objects`; the tables are objects, ",
        ),
    ] {
        let failed = check(sql).unwrap_err().to_string();
        assert!(failed.starts_with(text), "{failed}");
    }
}
