//! Final fields. A dump has the names and types of fields but not their modifiers. So the modifiers are read from class
//! files.

use crate::ids::ClassIndex;
use crate::records::classes::{Classes, Field, Static};
use crate::records::record::Kind;

/// A field as declared in a class file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredField {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: Kind,
    /// True for static fields.
    pub is_static: bool,
    /// True for final fields.
    pub is_final: bool,
    /// True for transient fields.
    pub is_transient: bool,
}

/// The modifiers of fields that deep sizes do not follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedModifiers {
    /// Do not follow final fields.
    pub finals: bool,
    /// Do not follow transient fields.
    pub transients: bool,
}

/// The reference fields of a dump's classes that are known to have one of the [`SkippedModifiers`], such as `final`.
#[derive(Clone, Debug, Default)]
pub struct FinalFields {
    /// For each class, two lists: one for its instance fields, and one for its static fields. An element is true if the
    /// field has one of the skipped modifiers. A list is `None` if the modifiers are unknown.
    own: Vec<[Option<Box<[bool]>>; 2]>,
}

impl FinalFields {
    /// Finds out which fields are final. Calls `declared` with the name of each class that has reference fields.
    /// `declared` looks up the class and returns its fields, or `None` if it does not find the class. The returned
    /// fields are used only if they include all reference fields that the class has in the dump. Otherwise they belong
    /// to another version of the class.
    ///
    /// Fields of records and captured variables of lambdas are known to be final, and not transient, without a call.
    ///
    /// Cost: linear in the number of fields of all classes.
    pub fn new(
        classes: &Classes,
        declared: impl FnMut(&str) -> Option<Vec<DeclaredField>>,
    ) -> Self {
        let skipped = SkippedModifiers {
            finals: true,
            transients: false,
        };
        Self::with(classes, skipped, declared)
    }

    /// Finds out which fields have one of the modifiers in `skipped`. See [`FinalFields::new`].
    pub fn with(
        classes: &Classes,
        skipped: SkippedModifiers,
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
                Some(vec![skipped.finals; class.fields.len()].into())
            } else {
                flags(&found, false, skipped, fields())
            };
            [of_fields, flags(&found, true, skipped, statics())]
        });
        Self { own: own.collect() }
    }

    /// True if the modifiers (such as `final`) of the reference fields that a class declares are known. Static fields
    /// are not considered.
    #[must_use]
    pub fn are_own_fields_known(&self, class: ClassIndex) -> bool {
        let own = self.own.get(class.index());
        own.is_some_and(|own| own[0].is_some())
    }

    /// True if the modifiers (such as `final`) of the static reference fields that a class declares are known.
    #[must_use]
    pub fn are_statics_known(&self, class: ClassIndex) -> bool {
        let own = self.own.get(class.index());
        own.is_some_and(|own| own[1].is_some())
    }

    /// Returns for each class a list with a flag for each reference field of its instances. A flag is true if the field
    /// is known to be final. The order is that of [`RawVia::Field`](crate::answers::objects::reference::RawVia). If
    /// nothing is known, the list is empty.
    pub(crate) fn by_reference(&self, classes: &Classes) -> Vec<Box<[bool]>> {
        let all = classes.iter().map(|(index, _)| {
            let known = |c: &ClassIndex| self.own.get(c.index()).is_some_and(|o| o[0].is_some());
            if !classes.chain(index).any(|c| known(&c)) {
                return Box::default();
            }
            // In a damaged dump, a class may inherit too many fields. Then none of its references are followed.
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

    /// True if a static field is known to be final.
    pub(crate) fn has_static(&self, class: ClassIndex, place: u16) -> bool {
        let own = self.own.get(class.index()).and_then(|o| o[1].as_deref());
        own.and_then(|flags| flags.get(usize::from(place)))
            .is_some_and(|&f| f)
    }
}

/// Returns the name of a reference field. `None` for other fields.
fn field_name(field: &Field) -> Option<&str> {
    (field.kind == Kind::Object).then_some(&*field.name)
}

/// Returns the name of a static reference field. `None` for other fields, and for names like `<resolved_references>`,
/// which the JVM uses for references that are in no class file.
fn static_name(field: &Static) -> Option<&str> {
    (field.kind == Kind::Object && !field.name.starts_with('<')).then_some(&*field.name)
}

/// Returns a flag for each name: true if the field has one of the skipped modifiers. The flag is false for the name
/// `None`. Returns `None` if a name is not among the `found` fields.
fn flags<'a>(
    found: &[DeclaredField],
    is_static: bool,
    skipped: SkippedModifiers,
    names: impl Iterator<Item = Option<&'a str>>,
) -> Option<Box<[bool]>> {
    let flag = |name: Option<&str>| {
        let Some(name) = name else { return Some(false) };
        let first = found.partition_point(|f| (f.is_static, &*f.name) < (is_static, name));
        let named = found[first..]
            .iter()
            .take_while(|f| f.is_static == is_static && f.name == name);
        // Obfuscators give one name to several fields of different types. The dump does not show which of these fields
        // is meant, so all of them must have the modifier.
        let mut named = named.filter(|f| f.kind == Kind::Object).peekable();
        named.peek()?;
        let is_skipped = |f: &DeclaredField| {
            skipped.finals && f.is_final || skipped.transients && f.is_transient
        };
        Some(named.all(is_skipped))
    };
    names.map(flag).collect()
}

/// True if all instance fields of a class are final because it is a record or a lambda.
fn all_final(classes: &Classes, index: ClassIndex) -> bool {
    let class = &classes[index];
    let is_record = class
        .superclass
        .is_some_and(|s| classes[s].loader.is_null() && &*classes[s].name == "java.lang.Record");
    // In the JDK, the class of a lambda has `$$Lambda` in its name, and its fields for captured variables are called
    // `arg$1`, `arg$2` and so on.
    let captures = |f: &Field| f.name.strip_prefix("arg$").is_some_and(is_number);
    is_record || class.name.contains("$$Lambda") && class.fields.iter().all(captures)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
