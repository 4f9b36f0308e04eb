//! Which fields are final. A dump has the names and types of fields and no flags, so they are taken from
//! what knows the classes: their class files.

use crate::ids::ClassIndex;
use crate::records::classes::{Classes, Field, Static};
use crate::records::record::Kind;

/// A field as a class file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Whether it is static.
    pub is_static: bool,
    /// Whether it is final.
    pub is_final: bool,
}

/// Which reference fields of a dump's classes are final, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct FinalFields {
    /// For each class, whether each of its fields, then each of its statics, is final.
    own: Vec<[Option<Box<[bool]>>; 2]>,
}

impl FinalFields {
    /// Asks `declared` for the fields of each class that has reference fields; it answers `None` for
    /// classes that it does not know. What is answered counts only if all reference fields of the dump's
    /// class are among it: else it is of another version of the class.
    ///
    /// Without being asked for are known: fields of records, and what lambdas have captured. All of
    /// these are final.
    ///
    /// Cost: linear in the fields of all classes.
    pub fn new(
        classes: &Classes,
        mut declared: impl FnMut(&str) -> Option<Vec<DeclaredField>>,
    ) -> Self {
        let own = classes.iter().map(|(index, class)| {
            let fields = || class.fields.iter().map(field_name);
            let statics = || class.statics.iter().map(static_name);
            let asked = fields().chain(statics()).any(|name| name.is_some());
            let mut found = if asked {
                declared(&class.name).unwrap_or_default()
            } else {
                Vec::new()
            };
            found.sort_by(|a, b| (a.is_static, &a.name).cmp(&(b.is_static, &b.name)));
            let of_fields = if all_final(classes, index) {
                Some(vec![true; class.fields.len()].into())
            } else {
                flags(&found, false, fields())
            };
            [of_fields, flags(&found, true, statics())]
        });
        Self { own: own.collect() }
    }

    /// Whether it is known of each reference field that a class declares, statics aside, if it is final.
    #[must_use]
    pub fn knows_own(&self, class: ClassIndex) -> bool {
        let own = self.own.get(class.index());
        own.is_some_and(|own| own[0].is_some())
    }

    /// Whether it is known of each static reference field that a class declares if it is final.
    #[must_use]
    pub fn knows_statics(&self, class: ClassIndex) -> bool {
        let own = self.own.get(class.index());
        own.is_some_and(|own| own[1].is_some())
    }

    /// For each class and each reference field of its instances, in the order of
    /// [`RawVia::Field`](crate::answers::objects::reference::RawVia), whether it is known to be final; empty where none is.
    pub(crate) fn by_reference(&self, classes: &Classes) -> Vec<Box<[bool]>> {
        let all = classes.iter().map(|(index, _)| {
            let known = |c: &ClassIndex| self.own.get(c.index()).is_some_and(|o| o[0].is_some());
            if !classes.chain(index).any(|c| known(&c)) {
                return Box::default();
            }
            // Where a damaged dump's classes inherit without measure, no references are followed at all.
            let count = classes.ref_offsets(classes.layout(index.0)).len();
            let flags = classes.chain(index).flat_map(|c| {
                let boot = classes[c].loader.is_null();
                let holds_referent = boot && &*classes[c].name == "java.lang.ref.Reference";
                let fields = classes[c].fields.iter().enumerate();
                let own = self.own.get(c.index()).and_then(|own| own[0].as_deref());
                fields
                    .filter(move |(_, f)| {
                        f.kind == Kind::Object && !(holds_referent && &*f.name == "referent")
                    })
                    .map(move |(i, _)| own.is_some_and(|own| own[i]))
            });
            flags.take(count).collect()
        });
        all.collect()
    }

    /// Whether a static field is known to be final.
    pub(crate) fn has_static(&self, class: ClassIndex, place: u16) -> bool {
        let own = self.own.get(class.index()).and_then(|o| o[1].as_deref());
        own.and_then(|flags| flags.get(usize::from(place)))
            .is_some_and(|&f| f)
    }
}

/// The name of a reference field, which may be followed.
fn field_name(field: &Field) -> Option<&str> {
    (field.kind == Kind::Object).then_some(&*field.name)
}

/// As [`field_name`]; names like `<resolved_references>` are the JVM's own, and in no class file.
fn static_name(field: &Static) -> Option<&str> {
    (field.kind == Kind::Object && !field.name.starts_with('<')).then_some(&*field.name)
}

/// The flag of each name, if all of them are found; fields that refer to nothing count as not final.
fn flags<'a>(
    found: &[DeclaredField],
    is_static: bool,
    names: impl Iterator<Item = Option<&'a str>>,
) -> Option<Box<[bool]>> {
    let flag = |name: Option<&str>| {
        let Some(name) = name else { return Some(false) };
        let first = found.partition_point(|f| (f.is_static, &*f.name) < (is_static, name));
        let named = found[first..]
            .iter()
            .take_while(|f| f.is_static == is_static && f.name == name);
        // Obfuscators give one name to several fields of different types, which the dump does not tell.
        let mut named = named.filter(|f| f.kind == Kind::Object).peekable();
        named.peek()?;
        Some(named.all(|f| f.is_final))
    };
    names.map(flag).collect()
}

/// Whether the language has all of a class's instance fields final.
fn all_final(classes: &Classes, index: ClassIndex) -> bool {
    let class = &classes[index];
    let is_record = class
        .superclass
        .is_some_and(|s| classes[s].loader.is_null() && &*classes[s].name == "java.lang.Record");
    // What the JDK calls the class of a lambda, and what it has captured.
    let captures = |f: &Field| f.name.strip_prefix("arg$").is_some_and(is_number);
    is_record || class.name.contains("$$Lambda") && class.fields.iter().all(captures)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
