//! Values of thread locals. Each thread holds its values in a map. The `ThreadLocal` objects do not hold them.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::answers::objects::named::sorted;
use crate::answers::objects::object::{Content, Value};
use crate::answers::objects::select_error::SelectError;
use crate::answers::objects::selector::{Selected, Selector};
use crate::ids::ObjectIndex;
use crate::snapshot::Snapshot;

/// The value that one thread has for a thread local.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ThreadLocalValue {
    /// The thread.
    pub thread: ObjectIndex,
    /// The `ThreadLocal` object.
    pub local: ObjectIndex,
    /// The value.
    pub value: ObjectIndex,
}

impl Snapshot {
    /// True if an object is an instance of `java.lang.ThreadLocal` or of a subclass.
    #[must_use]
    pub fn is_thread_local(&self, object: ObjectIndex) -> bool {
        let classes = self.classes();
        let mut chain = self
            .class_of(object)
            .into_iter()
            .flat_map(|c| classes.chain(c));
        chain.any(|c| classes[c].loader.is_null() && &*classes[c].name == "java.lang.ThreadLocal")
    }

    /// Returns the values that threads have for the given thread locals, sorted by thread.
    ///
    /// Cost: reads the maps of all threads.
    #[must_use]
    pub fn thread_local_values(&self, locals: &[ObjectIndex]) -> Vec<ThreadLocalValue> {
        let locals: FxHashSet<ObjectIndex> = locals.iter().copied().collect();
        let threads: Vec<ObjectIndex> = self.threads().iter().filter_map(|t| t.object).collect();
        let object = |value: Option<Value>| value.and_then(Value::object);
        let maps = self.field_values(&threads, ["threadLocals", "inheritableThreadLocals"]);
        let maps = threads.iter().zip(maps).flat_map(|(&thread, maps)| {
            let maps = maps.into_iter().flatten();
            maps.filter_map(move |map| Some((thread, object(map)?)))
        });
        let (threads, maps): (Vec<ObjectIndex>, Vec<ObjectIndex>) = maps.unzip();
        let tables = self.field_values(&maps, ["table"]);
        let tables = threads.iter().zip(tables);
        let tables = tables.filter_map(|(&thread, table)| Some((thread, object(table?[0])?)));
        let (threads, tables): (Vec<ObjectIndex>, Vec<ObjectIndex>) = tables.unzip();
        let tables = self.read_all(&tables);
        let entries = threads.iter().zip(&tables).flat_map(|(&thread, table)| {
            let elements = table.iter().flat_map(|record| match &record.content {
                Content::Array(array) => array.elements(0..u32::MAX).collect(),
                _ => Vec::new(),
            });
            elements.filter_map(move |entry| Some((thread, entry.object()?)))
        });
        let (threads, entries): (Vec<ObjectIndex>, Vec<ObjectIndex>) = entries.unzip();
        let entries = self.field_values(&entries, ["referent", "value"]);
        let values = threads.iter().zip(entries).filter_map(|(&thread, entry)| {
            let [local, value] = entry?.map(object);
            let local = local.filter(|local| locals.contains(local))?;
            Some(ThreadLocalValue {
                thread,
                local,
                value: value?,
            })
        });
        let mut values: Vec<ThreadLocalValue> = values.collect();
        values.sort_unstable();
        values
    }

    /// Resolves `name`, a selector of thread locals, to the values that threads have for these thread locals.
    pub(super) fn values_of_locals(
        &self,
        name: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<Selected, SelectError> {
        let not_local = || SelectError::NoThreadLocal {
            name: name.to_owned(),
        };
        let selector: Selector = name.parse().map_err(|_| not_local())?;
        let selected = self.resolve_printed(&selector, printed)?;
        let mut locals = self.selected(&selector, selected)?;
        locals.retain(|&object| self.is_thread_local(object));
        if locals.is_empty() {
            return Err(not_local());
        }
        let values = self.thread_local_values(&locals);
        if values.is_empty() {
            Err(SelectError::NoValues {
                name: name.to_owned(),
            })
        } else {
            Ok(Selected::Values(sorted(
                values.iter().map(|v| v.value).collect(),
            )))
        }
    }
}
