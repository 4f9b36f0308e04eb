//! SQL functions that queries can use in addition to those of SQLite.

use std::sync::Arc;

use hprof::ObjectId;
use hprof::answers::{Content, Value as FieldValue};
use hprof::records::Kind;
use regex::Regex;
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value as SqlValue, ValueRef};

use crate::dumps::Dumps;
use crate::error::Result;
use crate::fields::FieldKinds;
use crate::heap::Heap;

/// Maximum number of characters that `text()` returns.
const CHARS: usize = 1 << 16;
/// Maximum number of bytes that `bytes()` returns.
const BYTES: usize = 1 << 20;

/// Registers the functions that read objects, and the function `regexp`, which SQLite calls for its operator REGEXP.
pub(crate) fn add(
    connection: &Connection,
    dumps: Option<&Dumps>,
    kinds: &FieldKinds,
) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("regexp", 2, flags, |context| {
        let compile = |value: ValueRef<'_>| -> Result<Regex, Failure> {
            let pattern = value
                .as_str()
                .map_err(|_| "REGEXP needs a string as pattern".to_owned())?;
            let wrong = |why| format!("REGEXP '{pattern}': {why}");
            Ok(heapdiff_diff::pattern(pattern).map_err(wrong)?)
        };
        let regex = context.get_or_create_aux(0, compile)?;
        Ok(match context.get_raw(1) {
            ValueRef::Text(text) => {
                Some(std::str::from_utf8(text).is_ok_and(|text| regex.is_match(text)))
            }
            _ => None,
        })
    })?;
    connection.create_scalar_function("hex_id", 1, flags, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Integer(id) => Some(ObjectId(id.cast_unsigned()).to_string()),
            _ => None,
        })
    })?;
    // With several dumps, the last argument names the dump. Without this argument, the functions use the first dump.
    for arguments in [2, 3] {
        let (dumps, kinds) = (dumps.cloned(), kinds.clone());
        connection.create_scalar_function("field", arguments, flags, move |context| {
            let Some(dumps) = &dumps else {
                return Ok(SqlValue::Null);
            };
            Ok(field(dump_argument(dumps, context, 2)?, context, &kinds))
        })?;
    }
    for arguments in [1, 2] {
        let known = dumps.cloned();
        connection.create_scalar_function("text", arguments, flags, move |context| {
            of_object(known.as_ref(), context, text)
        })?;
        let known = dumps.cloned();
        connection.create_scalar_function("bytes", arguments, flags, move |context| {
            of_object(known.as_ref(), context, bytes)
        })?;
    }
    Ok(())
}

/// Calls `read` with a dump and an object id, which come from the arguments of an SQL function.
fn of_object<T>(
    dumps: Option<&Dumps>,
    context: &Context<'_>,
    read: fn(&Heap, ObjectId) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let (Some(dumps), ValueRef::Integer(id)) = (dumps, context.get_raw(0)) else {
        return Ok(None);
    };
    let heap = dump_argument(dumps, context, 1)?;
    Ok(read(heap, ObjectId(id.cast_unsigned())))
}

/// Returns the dump that an argument names, or the first dump if the argument is missing.
fn dump_argument<'d>(
    dumps: &'d Dumps,
    context: &Context<'_>,
    argument: usize,
) -> rusqlite::Result<&'d Arc<Heap>> {
    let failed = |message: String| rusqlite::Error::UserFunctionError(message.into());
    if context.len() <= argument {
        let first = dumps.first();
        return first.ok_or_else(|| failed("no dump was given for the query".to_owned()));
    }
    let name = context.get::<String>(argument)?;
    dumps.by_name(&name).ok_or_else(|| {
        let names = dumps.names().join(", ");
        failed(if names.is_empty() {
            format!("unknown dump `{name}`: the only dump of this query has no name")
        } else {
            format!("unknown dump `{name}`; the dumps are {names}")
        })
    })
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Implements `field(id, 'name')`: returns the value of an object's field, or of a class object's static field. If
/// several classes in the hierarchy have a field of this name, the value is from the most derived class.
fn field(heap: &Heap, context: &Context<'_>, kinds: &FieldKinds) -> SqlValue {
    let (ValueRef::Integer(id), ValueRef::Text(name)) = (context.get_raw(0), context.get_raw(1))
    else {
        return SqlValue::Null;
    };
    let (snapshot, id) = (heap.snapshot(), ObjectId(id.cast_unsigned()));
    let Ok(name) = std::str::from_utf8(name) else {
        return SqlValue::Null;
    };
    let Some(object) = snapshot.find(id) else {
        return SqlValue::Null;
    };
    let value = match snapshot.represents(object) {
        Some(class) => snapshot.static_value(class, name),
        None => heap.place_of(object).and_then(|place| {
            let record = snapshot.parts().read(place)?;
            let Content::Instance(fields) = record.content else {
                return None;
            };
            fields.iter().find(|f| f.name == name)?.value
        }),
    };
    match value {
        None => return SqlValue::Null,
        Some(FieldValue::Object(id, _)) if id.is_null() => return SqlValue::Null,
        Some(value) => kinds.record(name, matches!(value, FieldValue::Object(..))),
    }
    match value {
        None => SqlValue::Null,
        Some(FieldValue::Object(id, _)) => SqlValue::Integer(id.0.cast_signed()),
        Some(FieldValue::Float(value)) => SqlValue::Real(value.into()),
        Some(FieldValue::Double(value)) => SqlValue::Real(value),
        Some(FieldValue::Char(unit)) => SqlValue::Text(String::from_utf16_lossy(&[unit])),
        Some(FieldValue::Boolean(value)) => SqlValue::Integer(value.into()),
        Some(other) => other.integer().map_or(SqlValue::Null, SqlValue::Integer),
    }
}

/// Implements `text(id)`: returns the content of a `java.lang.String`, or of an array that contains text.
fn text(heap: &Heap, id: ObjectId) -> Option<String> {
    let snapshot = heap.snapshot();
    let (object, parts) = (snapshot.find(id)?, snapshot.parts());
    let place = heap.place_of(object)?;
    if snapshot.array_length(object).is_none() {
        return parts.string(place, CHARS, &mut |array| heap.place_of(array));
    }
    match parts.read(place)?.content {
        Content::Array(array) => array.text(CHARS),
        _ => None,
    }
}

/// Implements `bytes(id)`: returns the content of an array of primitive values.
fn bytes(heap: &Heap, id: ObjectId) -> Option<Vec<u8>> {
    let snapshot = heap.snapshot();
    let object = snapshot.find(id)?;
    snapshot.array_length(object)?;
    match snapshot.parts().read(heap.place_of(object)?)?.content {
        Content::Array(array) if array.kind != Kind::Object => {
            let end = array.bytes().len().min(BYTES);
            Some(array.bytes()[..end].to_vec())
        }
        _ => None,
    }
}
