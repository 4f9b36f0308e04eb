//! Resolves a name to objects. The name is that of a class, a field, the elements of arrays, local variables, or a
//! thread.

use std::borrow::Cow;

use crate::answers::objects::locals;
use crate::answers::objects::object::{Content, Value};
use crate::answers::objects::select_error::SelectError;
use crate::answers::objects::selector::{SUGGESTIONS, Selected};
use crate::ids::{ClassIndex, ObjectId, ObjectIndex};
use crate::records::record::Kind;
use crate::snapshot::Snapshot;

/// Suffix of names in reports: `Foo[*]` stands for the elements of the arrays of type `Foo[]`.
const ELEMENTS: &str = "[*]";
/// Number of instances whose fields are read together.
const CHUNK: usize = 1 << 16;

impl Snapshot {
    /// Resolves a name. Looks for classes first, then fields, elements, local variables, threads, and finally names in
    /// the form that reports print.
    pub(super) fn named(
        &self,
        name: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<Selected, SelectError> {
        let selected = self.named_exactly(name, printed);
        match &selected {
            Err(SelectError::NoClass { .. } | SelectError::NoField { .. }) => {
                self.resolve_printed_name(name, printed).unwrap_or(selected)
            }
            _ => selected,
        }
    }

    fn named_exactly(
        &self,
        name: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<Selected, SelectError> {
        let classes = self.classes_named(name, printed);
        if !classes.is_empty() {
            return Ok(Selected::Classes(classes));
        }
        if let Some(frame) = locals::frame(name) {
            return self.local_variables(frame, printed);
        }
        if let Some(element) = name.strip_suffix(ELEMENTS) {
            let arrays = self.classes_named(&format!("{element}[]"), printed);
            let elements = self.elements(&arrays);
            if !elements.is_empty() {
                return Ok(Selected::Values(elements));
            }
        }
        if let Some((class, field)) = name.rsplit_once('.') {
            let classes = self.classes_named(class, printed);
            if !classes.is_empty() {
                let values = self.field(&classes, class, field);
                // Some reports print a method without its line number.
                return match values {
                    Err(SelectError::NoField { .. }) => {
                        let locals = self.local_variables(name, printed);
                        locals
                            .or_else(|_| self.threads_named(name).ok_or(()))
                            .or(values)
                    }
                    values => values,
                };
            }
        }
        self.threads_named(name).ok_or_else(|| {
            let threads = self.threads();
            let threads = threads.iter().filter_map(|t| t.name.as_deref());
            self.no_class(name, threads)
        })
    }

    fn threads_named(&self, name: &str) -> Option<Selected> {
        // Reports escape quotes and control characters in names.
        let is_same = |own: &str| own == name || own.escape_debug().to_string() == name;
        let exact = self.threads_where(|t| t.name.as_deref().is_some_and(is_same));
        let objects = match exact[..] {
            [] => self.threads_where(|t| t.name.as_deref().is_some_and(|n| is_cut(name, n))),
            _ => exact,
        };
        (!objects.is_empty()).then_some(Selected::Values(objects))
    }

    /// Returns the class objects of the classes with this name.
    pub(super) fn class_objects(
        &self,
        name: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<Selected, SelectError> {
        let classes = self.classes_named(name, printed);
        let objects = classes.iter().map(|c| ObjectIndex(c.0));
        let mut objects = objects.filter(|&o| self.represents(o).is_some());
        if self.classes().by_name(name).is_empty() {
            let all: Vec<ObjectIndex> = objects.collect();
            if !all.is_empty() {
                return Ok(Selected::Values(sorted(all)));
            }
            if let Some((class, field)) = name.rsplit_once('.') {
                // Reports with paths print the word `static` before a static field.
                let classes = self.classes_named(class, printed);
                if let Ok(object) = self.static_object(&classes, class, field) {
                    return Ok(Selected::Object(object));
                }
            }
            let of_printed = self.resolve_printed_name(&format!("class {name}"), printed);
            let none = || Err(self.no_class(name, std::iter::empty()));
            return of_printed.unwrap_or_else(none);
        }
        // Several loaders may define a class with this name. Take the first one.
        let first = objects.next();
        first
            .map(Selected::Object)
            .ok_or_else(|| self.no_class(name, std::iter::empty()))
    }

    /// Returns the classes with this name in the dump. If no class has the name, returns the classes for which reports
    /// print this name.
    pub(super) fn classes_named(
        &self,
        name: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Vec<ClassIndex> {
        let exact = self.classes().by_name(name);
        if !exact.is_empty() {
            return exact.to_vec();
        }
        let classes = self.classes().iter();
        let alike = classes.filter(|(_, c)| matches!(printed(&c.name), Cow::Owned(p) if p == name));
        let alike: Vec<ClassIndex> = alike.map(|(class, _)| class).collect();
        if !alike.is_empty() {
            return alike;
        }
        // A report on a narrow terminal cuts the middle out of a name.
        let mut names = self.classes().iter().map(|(_, c)| &*c.name);
        match names.find(|whole| is_cut(name, whole)) {
            Some(whole) if !names.any(|other| other != whole && is_cut(name, other)) => {
                self.classes().by_name(whole).to_vec()
            }
            _ => Vec::new(),
        }
    }

    /// Resolves a field of classes that all have the same name. A static field takes precedence over an instance field.
    fn field(
        &self,
        classes: &[ClassIndex],
        class: &str,
        field: &str,
    ) -> Result<Selected, SelectError> {
        let mut selected = self.field_in_dump(classes, class, field);
        // `field` may be the original name in the source, but the dump has the name that ProGuard or R8 gave the field.
        if let (Err(SelectError::NoField { .. }), Some(mapping)) = (&selected, self.mapping())
            && let Some(original) = mapping.field(class, field, "Object")
        {
            selected = self.field_in_dump(classes, class, original);
        }
        selected
    }

    fn field_in_dump(
        &self,
        classes: &[ClassIndex],
        class: &str,
        field: &str,
    ) -> Result<Selected, SelectError> {
        match self.static_object(classes, class, field) {
            Err(SelectError::NoField { .. }) => self.values_of(classes, class, field),
            of_static => of_static.map(Selected::Object),
        }
    }

    /// Returns the value of a static field. If several classes have the name, takes the first class in which the field
    /// is not null.
    fn static_object(
        &self,
        named: &[ClassIndex],
        name: &str,
        field: &str,
    ) -> Result<ObjectIndex, SelectError> {
        let classes = self.classes();
        let mut error = None;
        for &class in named {
            // A class inherits the static fields of its superclasses, so search these, too.
            let value = classes
                .chain(class)
                .find_map(|c| self.static_value(c, field));
            let (class, field) = (name.to_owned(), field.to_owned());
            let failure = match value {
                Some(Value::Object(_, Some(object))) => return Ok(object),
                Some(Value::Object(ObjectId::NULL, None)) => SelectError::Null { class, field },
                Some(Value::Object(id, None)) => SelectError::Dangling { class, field, id },
                Some(value) => SelectError::Primitive {
                    class,
                    field,
                    kind: value.kind().java_name(),
                },
                None => continue,
            };
            error.get_or_insert(failure);
        }
        Err(error.unwrap_or_else(|| self.no_field(named, name, field)))
    }

    /// Returns the values of a field in all instances of the given classes and of their subclasses.
    fn values_of(
        &self,
        named: &[ClassIndex],
        name: &str,
        field: &str,
    ) -> Result<Selected, SelectError> {
        let classes = self.classes();
        let declares = |c: &ClassIndex| classes[*c].fields.iter().any(|f| *f.name == *field);
        let (class, field) = (name.to_owned(), field.to_owned());
        let mut values: Vec<ObjectIndex> = Vec::new();
        let (mut instances, mut kind) = (0, None);
        for &of in named {
            let Some(declaring) = classes.chain(of).find(declares) else {
                continue;
            };
            let declared = classes[declaring].fields.iter().find(|f| *f.name == *field);
            kind = kind.or(declared.map(|f| f.kind));
            let below = classes.iter().map(|(c, _)| c);
            let below: Vec<ClassIndex> = below.filter(|&c| classes.is_subclass(c, of)).collect();
            let objects = self.instances(&below);
            instances += objects.len() as u64;
            for objects in objects.chunks(CHUNK) {
                let of_chunk = self.values_of_field(objects, declaring, &field);
                values.extend(of_chunk.into_iter().filter_map(Value::object));
            }
        }
        if !values.is_empty() {
            return Ok(Selected::Values(sorted(values)));
        }
        Err(match kind {
            None => self.no_field(named, name, &field),
            Some(Kind::Object) => SelectError::NullInAll {
                class,
                field,
                instances,
            },
            Some(kind) => SelectError::Primitive {
                class,
                field,
                kind: kind.java_name(),
            },
        })
    }

    /// Returns the elements of all arrays of the given classes, sorted and without duplicates.
    fn elements(&self, arrays: &[ClassIndex]) -> Vec<ObjectIndex> {
        let arrays = self.instances(arrays);
        let mut elements: Vec<ObjectIndex> = Vec::new();
        for arrays in arrays.chunks(CHUNK) {
            for record in self.read_all(arrays).into_iter().flatten() {
                if let Content::Array(array) = &record.content {
                    elements.extend(array.elements(0..u32::MAX).filter_map(Value::object));
                }
            }
            elements = sorted(elements);
        }
        elements
    }

    fn no_field(&self, named: &[ClassIndex], name: &str, field: &str) -> SelectError {
        let classes = self.classes();
        let chain = || named.iter().flat_map(|&c| classes.chain(c));
        let statics = chain().flat_map(|c| &classes[c].statics);
        let statics = statics.filter(|s| s.kind == Kind::Object).map(|s| &*s.name);
        let fields = chain().flat_map(|c| &classes[c].fields);
        let fields = fields.filter(|f| f.kind == Kind::Object).map(|f| &*f.name);
        SelectError::NoField {
            class: name.to_owned(),
            field: field.to_owned(),
            similar: similar(field, statics.chain(fields), |name| name),
        }
    }

    /// Returns the error for a name that does not exist, with the names of similar classes and threads.
    fn no_class<'a>(&self, name: &str, threads: impl Iterator<Item = &'a str>) -> SelectError {
        let names = || self.classes().iter().map(|(_, c)| &*c.name);
        let mut alike = similar(name, names(), simple_name);
        if alike.is_empty() {
            let whole = names().filter(|whole| is_cut(name, whole));
            alike = whole.map(str::to_owned).collect();
            alike.sort_unstable();
            alike.dedup();
            alike.truncate(SUGGESTIONS);
        }
        // If the name has the form `com.acme.Foo.field`, the mistake may be in the name of the class.
        if alike.is_empty()
            && let Some((class, _)) = name.rsplit_once('.')
        {
            alike = similar(class, names(), simple_name);
        }
        if alike.is_empty() {
            alike = similar(name, threads, |name| name);
        }
        SelectError::NoClass {
            name: name.to_owned(),
            similar: alike,
        }
    }
}

pub(super) fn sorted(mut objects: Vec<ObjectIndex>) -> Vec<ObjectIndex> {
    objects.sort_unstable();
    objects.dedup();
    objects
}

/// True if `name` is `whole` with its middle cut out: `com.ac…Foo`.
fn is_cut(name: &str, whole: &str) -> bool {
    let parts = name.split_once('…');
    parts.is_some_and(|(start, end)| {
        let rest = whole.strip_prefix(start);
        !(start.is_empty() && end.is_empty()) && rest.is_some_and(|rest| rest.ends_with(end))
    })
}

/// Returns the name without its package.
pub(super) fn simple_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, simple)| simple)
}

/// Returns at most [`SUGGESTIONS`] names that a user who wrote `wanted` might have meant. These are names that differ
/// from `wanted` in at most a quarter of its letters (at least 1, at most 4), and names with the same simple name. If
/// `wanted` has no package, names with a similar simple name count, too. Upper and lower case do not matter.
pub(super) fn similar<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    simple: impl Fn(&str) -> &str,
) -> Vec<String> {
    let most = (wanted.chars().count() / 4).clamp(1, 4);
    let lower = wanted.to_lowercase();
    let (lower_simple, package) = (simple(&lower).to_owned(), lower.contains('.'));
    let mut found: Vec<(usize, &str)> = names
        .filter_map(|name| {
            // Whole names whose lengths differ by more than `most` are not compared letter by letter.
            let close_length = name.len().abs_diff(wanted.len()) <= most;
            let candidate = name.to_lowercase();
            let distance = if close_length {
                strsim::osa_distance(&lower, &candidate)
            } else {
                usize::MAX
            };
            let same = simple(&candidate) == lower_simple;
            let rank = match (distance <= most, same) {
                (true, _) => distance,
                (false, true) => most + 1,
                (false, false) if !package => {
                    let near = strsim::osa_distance(&lower_simple, simple(&candidate));
                    (near <= most).then_some(most + 1 + near)?
                }
                _ => return None,
            };
            Some((rank, name))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    let best = found.into_iter().take(SUGGESTIONS);
    best.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_offered() {
        let names = [
            "com.acme.Entry",
            "com.acme.Order",
            "org.other.entry",
            "java.lang.Object",
        ];
        let similar = |wanted| similar(wanted, names.into_iter(), simple_name);
        assert_eq!(similar("com.acme.Entri"), ["com.acme.Entry"]);
        assert_eq!(similar("Entry"), ["com.acme.Entry", "org.other.entry"]);
        assert_eq!(similar("Oder"), ["com.acme.Order"]);
        assert!(similar("com.acme.Unrelated").is_empty());
    }
}
