//! Tests that Parquet files can be read by the reader of the `parquet` crate.
#![allow(clippy::unwrap_used)]

use heapdiff_tables::{Cell, Column, Error, Kind, ParquetOptions, ParquetWriter, RowWriter};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;

fn columns() -> Vec<Column> {
    vec![
        Column::new("flag", Kind::Bool),
        Column::new("n", Kind::Int),
        Column::new("id", Kind::Id),
        Column::new("part", Kind::Double),
        Column::new("name", Kind::Text),
    ]
}

type Row = (
    Option<bool>,
    Option<i64>,
    Option<u64>,
    Option<f64>,
    Option<String>,
);

fn written(rows: &[Row], options: ParquetOptions) -> Vec<u8> {
    let mut writer = ParquetWriter::new(Vec::new(), &columns(), options).unwrap();
    for (flag, n, id, part, name) in rows {
        let cells = [
            flag.map_or(Cell::Null, Cell::Bool),
            n.map_or(Cell::Null, Cell::Int),
            id.map_or(Cell::Null, Cell::Id),
            part.map_or(Cell::Null, Cell::Double),
            name.as_deref().map_or(Cell::Null, Cell::Text),
        ];
        writer.row(&cells).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: Vec<u8>) -> (Vec<Row>, usize) {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let mut rows = Vec::new();
    for read in reader.get_row_iter(None).unwrap() {
        let read = read.unwrap();
        let mut row: Row = (None, None, None, None, None);
        for (name, field) in read.get_column_iter() {
            match (name.as_str(), field) {
                ("flag", Field::Bool(value)) => row.0 = Some(*value),
                ("n", Field::Long(value)) => row.1 = Some(*value),
                ("id", Field::ULong(value)) => row.2 = Some(*value),
                ("part", Field::Double(value)) => row.3 = Some(*value),
                ("name", Field::Str(value)) => row.4 = Some(value.clone()),
                (_, Field::Null) => {}
                other => panic!("{other:?}"),
            }
        }
        rows.push(row);
    }
    (rows, reader.metadata().num_row_groups())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn written_rows_are_read_back(
        rows in proptest::collection::vec(
            (any::<Option<bool>>(), any::<Option<i64>>(), any::<Option<u64>>(),
             proptest::option::of(-1e9..1e9), any::<Option<String>>()),
            0..70,
        ),
        group_rows in 1_usize..40,
    ) {
        let options = ParquetOptions { group_rows, ..ParquetOptions::default() };
        let groups = rows.len().div_ceil(group_rows);
        prop_assert_eq!(read(written(&rows, options)), (rows, groups));
    }
}

#[test]
fn the_footer_contains_the_metadata() {
    let metadata = vec![("heapdiff.dump".to_owned(), "a.hprof".to_owned())];
    let options = ParquetOptions {
        metadata,
        created_by: "heapdiff version 9".to_owned(),
        ..ParquetOptions::default()
    };
    let bytes = written(&[], options);
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let file = reader.metadata().file_metadata();
    assert_eq!(file.created_by(), Some("heapdiff version 9"));
    let pairs = file.key_value_metadata().unwrap();
    assert_eq!(pairs[0].key, "heapdiff.dump");
    assert_eq!(pairs[0].value.as_deref(), Some("a.hprof"));
    assert_eq!(file.num_rows(), 0);
}

#[test]
fn long_strings_end_a_row_group_early() {
    let text = "x".repeat(1 << 10);
    let rows: Vec<Row> = (0..1024)
        .map(|n| (None, Some(n), None, None, Some(text.clone())))
        .collect();
    let options = ParquetOptions {
        group_bytes: 1 << 18,
        ..ParquetOptions::default()
    };
    let (back, groups) = read(written(&rows, options));
    assert_eq!(groups, 4);
    assert_eq!(back, rows);
}

#[test]
fn a_cell_of_another_type_is_refused_without_effect() {
    let mut writer = ParquetWriter::new(Vec::new(), &columns(), ParquetOptions::default()).unwrap();
    let good = [
        Cell::Bool(true),
        Cell::Int(1),
        Cell::Id(u64::MAX),
        Cell::Int(2),
        Cell::Text("a"),
    ];
    writer.row(&good).unwrap();
    let mut bad = good;
    bad[4] = Cell::Int(7);
    let refused = writer.row(&bad).unwrap_err();
    assert!(matches!(refused, Error::Kind { row: 2, .. }));
    assert_eq!(
        refused.to_string(),
        "column name: row 2 contains integer, but earlier rows contain text"
    );
    let row = (
        Some(true),
        Some(1),
        Some(u64::MAX),
        Some(2.0),
        Some("a".to_owned()),
    );
    assert_eq!(read(writer.finish().unwrap()), (vec![row], 1));
}
