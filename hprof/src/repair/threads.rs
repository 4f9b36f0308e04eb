//! Threads that were alive when the dump was taken. The GC roots of threads come last in a dump, so a truncated dump
//! lacks these roots.

use crate::ids::IdMap;
use crate::records::classes::Classes;
use crate::records::record::Kind;

/// For each class of threads, the offset of the field that shows if a thread is alive.
#[derive(Debug, Default)]
pub(super) struct ThreadClasses(IdMap<usize>);

impl ThreadClasses {
    /// Finds the classes of threads. `java.lang.Thread.eetop` is the address of the JVM's data about a thread. It is
    /// zero if the thread has not started, if it has ended, and for virtual threads.
    pub(super) fn new(classes: &Classes, id_size: usize) -> Self {
        let mut found = IdMap::default();
        let of_boot = |class: &&_| classes[**class].loader.is_null();
        let Some(&thread) = classes.by_name("java.lang.Thread").iter().find(of_boot) else {
            return Self::default();
        };
        for (class, of) in classes.iter().take(classes.dumped()) {
            if !classes.is_subclass(class, thread) {
                continue;
            }
            // The fields of a class come before those of its superclass.
            let fields = classes.chain(class).flat_map(|c| {
                let fields = classes[c].fields.iter();
                fields.map(move |field| (c, field))
            });
            let mut at = 0;
            for (c, field) in fields {
                if c == thread && field.kind == Kind::Long && &*field.name == "eetop" {
                    found.insert(of.id.0, at);
                    break;
                }
                at += field.kind.size(id_size);
            }
        }
        Self(found)
    }

    /// True if an object is a thread that was alive. `fields` has the values of its fields.
    pub(super) fn is_alive(&self, class: u64, fields: &[u8]) -> bool {
        let value = |&at: &usize| fields.get(at..at + 8);
        let value = self.0.get(&class).and_then(value);
        value.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0))
    }
}
