//! SQLite virtual tables, one for each [`Table`].
//!
//! To plan a query, SQLite passes several sets of comparisons to each table, and the table returns the cost of each set
//! (`best_index`). SQLite then runs the cheapest plan: it opens cursors, passes the values to them (`filter`), and
//! reads the columns that it needs.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::vtab::{
    Context, CreateVTab, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig,
    VTabConnection, VTabCursor, VTabKind, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use crate::bounds::Stop;
use crate::filter::{Constraint, Op};
use crate::heap::Heap;
use crate::schema::Table;
use crate::table::{self, Ask, Cursor};
use crate::value::{Scalar, Value};

/// A bit in the number of a query plan: it is set if rows must be sorted by class. In the other bits, bit `i` is set if
/// the query uses the column with index `i`.
const BY_CLASS: c_int = 1 << 30;

/// Creates the tables of a dump in a schema of a connection. `others` are internal tables, which are not in
/// [`Table::ALL`].
pub(crate) fn create(
    connection: &Connection,
    schema: &str,
    (heap, stop): (&Arc<Heap>, &Stop),
    others: &[Table],
) -> Result<()> {
    const MODULE: &Module<'static, HeapTable> = &Module::read_only_module();
    let module = format!("dump_{schema}");
    connection.create_module(&*module, MODULE, Some((heap.clone(), stop.clone())))?;
    for table in Table::ALL.iter().chain(others) {
        let columns = table.declared_columns();
        let name = table.name();
        let create = format!("CREATE VIRTUAL TABLE {schema}.{name} USING {module}({columns})");
        connection.execute(&create, [])?;
    }
    Ok(())
}

/// A virtual table over a dump, as one connection to SQLite sees it.
#[repr(C)]
pub(crate) struct HeapTable {
    /// The part of this struct that SQLite reads and writes. It must be the first field, because SQLite only has a
    /// pointer to it.
    base: sqlite3_vtab,
    heap: Arc<Heap>,
    stop: Stop,
    table: Table,
}

// SAFETY: `VTab` requires a `repr(C)` struct whose first field is a `sqlite3_vtab`. Both hold here.
unsafe impl<'vtab> VTab<'vtab> for HeapTable {
    type Aux = (Arc<Heap>, Stop);
    type Cursor = HeapCursor<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _module: &[u8],
        _database: &[u8],
        table: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let (heap, stop) = aux.ok_or_else(|| failed("the table was created without a dump"))?;
        let name = std::str::from_utf8(table).unwrap_or_default();
        let unlisted = Some(Table::ObjectSums).filter(|table| table.name() == name);
        let table = Table::by_name(name).or(unlisted);
        let table = table.ok_or_else(|| failed("an unknown table"))?;
        db.config(VTabConfig::Innocuous)?;
        let declaration = CString::new(table.declaration("x")).map_err(failed)?;
        let table = Self {
            base: sqlite3_vtab::default(),
            heap: heap.clone(),
            stop: stop.clone(),
            table,
        };
        Ok((Cow::Owned(declaration), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let (heap, table) = (&self.heap, &self.table);
        let class = table.column_names().position(|name| name == "class");
        let mut ask = Ask {
            used: info.col_used(),
            by_class: false,
            constraints: Vec::new(),
            stop: self.stop.clone(),
        };
        let mut taken = Vec::new();
        let mut plan = String::new();
        for (at, constraint) in info.constraints().enumerate() {
            let op = match op_of(&constraint.operator()) {
                Some(Op::Eq) if info.is_in_constraint(at)? => Some(Op::In),
                op => op,
            };
            let column = usize::try_from(constraint.column()).ok();
            let (true, Some(op), Some(column)) = (constraint.is_usable(), op, column) else {
                continue;
            };
            // The tables compare names byte by byte. If the statement uses another collation, leave the comparison to
            // SQLite.
            let exact = !op.is_for_names() || info.collation(at)? == "BINARY";
            if !table::accepts(*table, column, op) || !exact {
                continue;
            }
            let value = match op {
                Op::In => Scalar::Other,
                _ => info.rhs_value(at)?.map_or(Scalar::Other, scalar),
            };
            ask.constraints.push(Constraint { column, op, value });
            taken.push((at, op == Op::In));
            plan.push_str(&format!("{column}{}", op.code()));
        }
        for (argument, &(at, is_in)) in (1..).zip(&taken) {
            info.constraint_usage(at).set_argv_index(argument);
            if is_in {
                // Request all values of an `IN` list at once. Otherwise SQLite would scan the table once for each
                // value.
                info.set_in_constraint(at, true)?;
            }
        }
        let (cost, rows) = table::cost(heap, *table, &ask);
        let mut number = (ask.used & 0x3fff_ffff) as c_int;
        let orders = info
            .order_bys()
            .map(|o| (usize::try_from(o.column()).ok(), o.is_order_by_desc()));
        let by_class = orders.collect::<Vec<_>>() == [(class, false)];
        if *table == Table::Objects && by_class && heap.snapshot().class_class().is_some() {
            number |= BY_CLASS;
            info.set_order_by_consumed(true);
        }
        info.set_idx_num(number);
        info.set_idx_str(&plan);
        info.set_estimated_cost(cost);
        info.set_estimated_rows(i64::try_from(rows).unwrap_or(i64::MAX));
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<HeapCursor<'vtab>> {
        Ok(HeapCursor {
            base: sqlite3_vtab_cursor::default(),
            heap: self.heap.clone(),
            stop: self.stop.clone(),
            table: self.table,
            cursor: None,
            row: 0,
            _table: PhantomData,
        })
    }
}

impl CreateVTab<'_> for HeapTable {
    const KIND: VTabKind = VTabKind::Default;
}

/// A cursor over one of the tables.
#[repr(C)]
pub(crate) struct HeapCursor<'vtab> {
    /// The part of this struct that SQLite reads and writes. It must be the first field, because SQLite only has a
    /// pointer to it.
    base: sqlite3_vtab_cursor,
    heap: Arc<Heap>,
    stop: Stop,
    table: Table,
    /// `None` before the first row is requested, and after the last.
    cursor: Option<Box<dyn Cursor>>,
    row: i64,
    _table: PhantomData<&'vtab HeapTable>,
}

// SAFETY: `VTabCursor` requires a `repr(C)` struct whose first field is a `sqlite3_vtab_cursor`. Both hold here.
unsafe impl VTabCursor for HeapCursor<'_> {
    fn filter(&mut self, number: c_int, plan: Option<&str>, args: &Filters<'_>) -> Result<()> {
        let mut constraints = Vec::new();
        let mut column = 0;
        for c in plan.unwrap_or_default().chars() {
            if let Some(digit) = c.to_digit(10) {
                column = column * 10 + digit as usize;
                continue;
            }
            let Some(op) = Op::from_code(c) else {
                return Err(failed(
                    "SQLite passed a query plan that heapdiff did not make",
                ));
            };
            let value = match op {
                Op::In => {
                    let values = args.in_values(constraints.len())?;
                    Scalar::List(values.map(|value| Ok(scalar(value))).collect()?)
                }
                _ => args.get::<Compared>(constraints.len())?.0,
            };
            constraints.push(Constraint { column, op, value });
            column = 0;
        }
        let ask = Ask {
            used: u64::from((number & !BY_CLASS).cast_unsigned()),
            by_class: number & BY_CLASS != 0,
            constraints,
            stop: self.stop.clone(),
        };
        let cursor = table::open(&self.heap, self.table, &ask).map_err(failed)?;
        self.cursor = Some(cursor);
        self.row = 0;
        self.next()
    }

    fn next(&mut self) -> Result<()> {
        self.stop.check().map_err(failed)?;
        self.row += 1;
        if let Some(cursor) = &mut self.cursor
            && !cursor.advance().map_err(failed)?
        {
            self.cursor = None;
        }
        Ok(())
    }

    fn eof(&self) -> bool {
        self.cursor.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let cursor = self.cursor.as_ref();
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        match cursor.map_or(Value::Null, |cursor| cursor.cell(column)) {
            Value::Null => context.set_result(rusqlite::types::Null),
            Value::Bool(value) => context.set_result(value),
            Value::Int(value) => context.set_result(value),
            Value::Id(id) => context.set_result(id.cast_signed()),
            Value::Text(text) => context.set_result(&*text),
        }
    }

    fn rowid(&self) -> Result<i64> {
        let known = self.cursor.as_ref().and_then(|cursor| cursor.rowid());
        Ok(known.unwrap_or(self.row))
    }
}

/// A value with which the query compares a column.
struct Compared(Scalar);

impl rusqlite::types::FromSql for Compared {
    fn column_result(value: ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        Ok(Self(scalar(value)))
    }
}

fn scalar(value: ValueRef<'_>) -> Scalar {
    match value {
        ValueRef::Null => Scalar::Null,
        ValueRef::Integer(value) => Scalar::Int(value),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Scalar::Text(text.to_owned()),
            Err(_) => Scalar::Other,
        },
        ValueRef::Real(_) | ValueRef::Blob(_) => Scalar::Other,
    }
}

const fn op_of(op: &IndexConstraintOp) -> Option<Op> {
    use IndexConstraintOp as C;
    Some(match op {
        C::SQLITE_INDEX_CONSTRAINT_EQ => Op::Eq,
        C::SQLITE_INDEX_CONSTRAINT_GT => Op::Gt,
        C::SQLITE_INDEX_CONSTRAINT_GE => Op::Ge,
        C::SQLITE_INDEX_CONSTRAINT_LT => Op::Lt,
        C::SQLITE_INDEX_CONSTRAINT_LE => Op::Le,
        C::SQLITE_INDEX_CONSTRAINT_LIKE => Op::Like,
        C::SQLITE_INDEX_CONSTRAINT_GLOB => Op::Glob,
        C::SQLITE_INDEX_CONSTRAINT_REGEXP => Op::Regexp,
        _ => return None,
    })
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::ModuleError(error.to_string())
}
