//! Resolves names in the form in which reports print them: with an address, a length, a count, or a note on how the
//! object is held.

use std::borrow::Cow;

use crate::answers::objects::named::sorted;
use crate::answers::objects::select_error::SelectError;
use crate::answers::objects::selector::Selected;
use crate::answers::threads::Thread;
use crate::ids::{ClassIndex, NONE, ObjectId, ObjectIndex};
use crate::records::walk::RootKind;
use crate::snapshot::Snapshot;

/// Suffixes that reports print after the name of a class to show how its instances are held.
const HELD: [&str; 3] = [
    " (several paths)",
    " (a chain)",
    " (a chain of these objects)",
];
/// Reports print this suffix after the class of threads whose local variables hold objects.
const BY_LOCALS: &str = " (local variable)";
/// Maximum number of characters of a Clojure name that are read.
const NAME: usize = 1000;
/// The prefix in `values of NAME`, which selects the values of a thread local.
const VALUES_OF: &str = "values of ";
/// Words that reports print in place of several references. They do not name an object.
const NO_NAMES: [&str; 4] = ["(several paths)", "several paths", "GC roots", "[]"];
/// A name as a report prints it, split into its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Printed<'a> {
    /// The object at an address.
    Address(ObjectId),
    /// A shorter name that resolves to the same objects.
    Name(&'a str),
    /// An object that headlines show with its name in Scala or Kotlin source. The string is its name in the heap.
    InHeap(String),
    /// The value of a Clojure Var, by the Var's namespace and name.
    Var(&'a str, &'a str),
    /// The arrays with this class and this length.
    Arrays(String, u32),
    /// The threads with this name, which the report puts in quotes.
    Threads(&'a str),
    AllThreads,
    /// The objects that local variables hold, in the threads of this class.
    LocalsOf(&'a str),
    /// The values of thread locals.
    ValuesOf(&'a str),
    /// The text does not name an object.
    NoName,
}

impl<'a> Printed<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        if let Some(local) = name.strip_prefix(VALUES_OF) {
            return Some(Self::ValuesOf(local));
        }
        if let Some((namespace, var)) = name.strip_prefix("#'").and_then(|n| n.split_once('/')) {
            return Some(Self::Var(namespace, var));
        }
        if let Some(name) = in_heap(name) {
            return Some(Self::InHeap(name));
        }
        if let Some(id) = address(name) {
            return Some(Self::Address(id));
        }
        if matches!(name, "thread" | "threads") {
            return Some(Self::AllThreads);
        }
        if NO_NAMES.contains(&name)
            || name.starts_with('<') && name.ends_with('>')
            || RootKind::ALL.iter().any(|kind| kind.name() == name)
        {
            return Some(Self::NoName);
        }
        if let Some(class) = name.strip_suffix(BY_LOCALS) {
            return Some(Self::LocalsOf(class));
        }
        if let Some(at) = name.find('"').filter(|_| name.ends_with('"')) {
            let before = &name[..at];
            if before.is_empty() || before.ends_with(' ') {
                return Some(Self::Threads(&name[at..]));
            }
        }
        if let Some(arrays) = arrays(name) {
            return Some(arrays);
        }
        shorter(name).map(Self::Name)
    }
}

/// Converts a name in Scala or Kotlin source to the name in the heap:
///
/// - `a.Shop.carts (Scala object)` -> `a.Shop$.carts`
/// - `the Scala object a.Shop` -> `a.Shop$.MODULE$`
/// - `a.ShopKt.carts (in Shop.kt)` -> `a.ShopKt.carts`
/// - `lambdas of a.Shop` -> `a.Shop$$Lambda`
fn in_heap(name: &str) -> Option<String> {
    if let Some(class) = name.strip_prefix("the Scala object ") {
        return Some(format!("{class}$.MODULE$"));
    }
    if let Some(around) = name.strip_prefix("lambdas of ") {
        return Some(format!("{around}$$Lambda"));
    }
    if let Some(field) = name.strip_suffix(" (Scala object)") {
        let (class, field) = field.rsplit_once('.')?;
        return Some(format!("{class}$.{field}"));
    }
    let (field, _) = name.strip_suffix(".kt)")?.split_once(" (in ")?;
    Some(field.to_owned())
}

/// Returns the address that a printed name contains: `CLASS @ 0x7f00 "text"` -> 0x7f00, `CLASS@0x7f00` -> 0x7f00,
/// `CLASS, such as 0x7f00` -> 0x7f00.
fn address(name: &str) -> Option<ObjectId> {
    let mut marks = [" @ 0x", "@0x", ", such as 0x"].into_iter();
    let (_, after) = marks.find_map(|mark| name.split_once(mark))?;
    let digits = after.split(' ').next()?;
    u64::from_str_radix(digits, 16).ok().map(ObjectId)
}

/// Returns the class and the length that a printed name of arrays contains: `java.lang.Object[6246]` ->
/// `java.lang.Object[]` and 6246, `byte[3][]` -> `byte[][]` and 3.
fn arrays<'a>(name: &str) -> Option<Printed<'a>> {
    let (element, rest) = name.split_once('[')?;
    let (length, more) = rest.split_once(']')?;
    let length = length.parse().ok().filter(|_| !element.is_empty())?;
    Some(Printed::Arrays(format!("{element}[]{more}"), length))
}

/// Returns the name without the prefix or suffix that reports print.
fn shorter(name: &str) -> Option<&str> {
    if let Some(class) = HELD.iter().find_map(|suffix| name.strip_suffix(suffix)) {
        return Some(class);
    }
    // A name and the loader of the class: `CLASS x 3 (loader: app)`.
    if let Some((name, _)) = name
        .split_once(" (loader: ")
        .filter(|_| name.ends_with(')'))
    {
        return Some(name);
    }
    // A class and a number of instances: `CLASS x 10,000`.
    if let Some((class, count)) = name.rsplit_once(" x ")
        && count.bytes().all(|b| b.is_ascii_digit() || b == b',')
    {
        return Some(class);
    }
    // A class and its loader: `CLASS <classes of the loader>`.
    if let Some((class, _)) = name.split_once(" <").filter(|_| name.ends_with('>')) {
        return Some(class);
    }
    // A field and the class of its value: `.field = CLASS`.
    if let Some((_, class)) = name.split_once(" = ") {
        return Some(class);
    }
    // The kind of a GC root and the class of the object: `(JNI global) CLASS`.
    if let Some((_, class)) = name.strip_prefix('(').and_then(|n| n.split_once(") ")) {
        return Some(class);
    }
    let of_root = |kind: &RootKind| name.strip_prefix(kind.name())?.strip_prefix(' ');
    RootKind::ALL.iter().find_map(of_root)
}

impl Snapshot {
    /// Resolves a name as reports print it. Returns `None` if there is no such object.
    pub(super) fn resolve_printed_name(
        &self,
        name: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Option<Result<Selected, SelectError>> {
        let objects = match Printed::parse(name)? {
            Printed::Address(id) => {
                return Some(match self.find(id) {
                    Some(object) => Ok(Selected::Object(object)),
                    None => Err(self.no_object(id)),
                });
            }
            Printed::Name(name) => {
                let name = name.trim_start();
                let class = name.strip_prefix("class ");
                return Some(match class.or_else(|| name.strip_prefix("static ")) {
                    Some(class) => self.class_objects(class, printed),
                    None => match self.named(name, printed) {
                        // If a class has no instances, its static fields hold the objects.
                        Ok(Selected::Classes(classes)) if self.instances(&classes).is_empty() => {
                            self.class_objects(name, printed)
                        }
                        selected => selected,
                    },
                });
            }
            Printed::InHeap(name) => return Some(self.named(&name, printed)),
            Printed::Var(namespace, var) => self.clojure_var(namespace, var),
            Printed::Arrays(class, length) => {
                let mut arrays = self.instances(&self.classes_named(&class, printed));
                arrays.retain(|&o| self.array_length(o) == Some(length));
                arrays
            }
            Printed::Threads(quoted) => self.threads_where(|t| {
                let name = t.name.as_deref();
                name.is_some_and(|name| {
                    format!("{name:?}") == quoted || format!("\"{name}\"") == quoted
                })
            }),
            Printed::AllThreads => self.threads_where(|_| true),
            Printed::LocalsOf(class) => {
                let classes = self.classes_named(class, printed);
                let mut threads = self.threads();
                threads.retain(|t| self.is_thread_of(t, &classes));
                let frames = threads.iter().flat_map(|t| &t.frames);
                let locals = frames.flat_map(|f| &f.locals);
                let others = threads.iter().flat_map(|t| &t.other_locals);
                sorted(locals.chain(others).map(|local| local.object).collect())
            }
            Printed::ValuesOf(local) => return Some(self.values_of_locals(local, printed)),
            Printed::NoName => {
                let name = name.to_owned();
                return Some(Err(SelectError::NoName { name }));
            }
        };
        (!objects.is_empty()).then_some(Ok(Selected::Values(objects)))
    }

    /// Returns the values of the Clojure Vars with this namespace and name.
    fn clojure_var(&self, namespace: &str, var: &str) -> Vec<ObjectIndex> {
        let vars = self.instances(self.classes().by_name("clojure.lang.Var"));
        let field = |objects: &[ObjectIndex], name: &'static str| -> Vec<ObjectIndex> {
            let values = self.field_values(objects, [name]).into_iter();
            let values = values.map(|v| v.and_then(|[value]| value?.object()));
            values.map(|v| v.unwrap_or(ObjectIndex(NONE))).collect()
        };
        let symbols = field(&vars, "sym");
        let namespaces = field(&field(&vars, "ns"), "name");
        let names = |symbols: &[ObjectIndex]| self.strings(&field(symbols, "name"), NAME);
        let of = names(&namespaces).into_iter().zip(names(&symbols));
        let values = field(&vars, "root").into_iter().zip(of);
        let is_meant = |name: &(Option<String>, Option<String>)| {
            name.0.as_deref() == Some(namespace) && name.1.as_deref() == Some(var)
        };
        let meant = values.filter(|(value, name)| value.0 != NONE && is_meant(name));
        sorted(meant.map(|(value, _)| value).collect())
    }

    fn is_thread_of(&self, thread: &Thread, classes: &[ClassIndex]) -> bool {
        let class = thread.object.and_then(|o| self.class_of(o));
        class.is_some_and(|class| classes.contains(&class))
    }

    /// Returns the thread objects of the threads for which `is` returns true, sorted.
    pub(super) fn threads_where(&self, is: impl Fn(&Thread) -> bool) -> Vec<ObjectIndex> {
        let threads = self.threads();
        let meant = threads.iter().filter(|t| is(t));
        sorted(meant.filter_map(|t| t.object).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_around_printed_names_is_removed() {
        let address = |name| match Printed::parse(name) {
            Some(Printed::Address(id)) => id.0,
            other => unreachable!("{name}: {other:?}"),
        };
        assert_eq!(address("a.B @ 0x7f00"), 0x7f00);
        assert_eq!(address("a.B@0x7f00"), 0x7f00);
        assert_eq!(address("java.lang.String @ 0x7f08 \"a text\""), 0x7f08);
        assert_eq!(address("java.util.ArrayList, such as 0x7f10"), 0x7f10);
        assert_eq!(address(".all = a.B[7] @ 0x7f18"), 0x7f18);
        for (name, expected) in [
            ("a.Shop.carts (Scala object)", "a.Shop$.carts"),
            ("the Scala object a.Shop", "a.Shop$.MODULE$"),
            ("a.ShopKt.carts (in Shop.kt)", "a.ShopKt.carts"),
            ("lambdas of a.Shop", "a.Shop$$Lambda"),
        ] {
            let expected = Some(Printed::InHeap(expected.to_owned()));
            assert_eq!(Printed::parse(name), expected);
        }
        assert_eq!(
            Printed::parse("#'shop.core/orders"),
            Some(Printed::Var("shop.core", "orders"))
        );
        let shorter = |name| match Printed::parse(name) {
            Some(Printed::Name(name)) => name,
            other => unreachable!("{name}: {other:?}"),
        };
        assert_eq!(shorter("a.B (several paths)"), "a.B");
        assert_eq!(shorter("a.B$Node x 1,234 (a chain)"), "a.B$Node x 1,234");
        assert_eq!(shorter("a.B x 2 (a chain of these objects)"), "a.B x 2");
        assert_eq!(shorter("a.B x 2 (loader: app)"), "a.B x 2");
        assert_eq!(shorter("a.B$Node x 1,234"), "a.B$Node");
        assert_eq!(shorter("a.Loader <classes of the loader>"), "a.Loader");
        assert_eq!(shorter(".next = a.B"), "a.B");
        assert_eq!(shorter("(busy monitor) a.B"), "a.B");
        assert_eq!(shorter("(soft reference) .next = a.B"), "a.B");
        assert_eq!(shorter("thread java.lang.Thread"), "java.lang.Thread");
        assert_eq!(shorter("JNI global a.B"), "a.B");
        let arrays = |class: &str, length| Some(Printed::Arrays(class.to_owned(), length));
        assert_eq!(Printed::parse("byte[3][]"), arrays("byte[][]", 3));
        assert_eq!(Printed::parse("a.B[16]"), arrays("a.B[]", 16));
        for name in [
            "a.B", "a.B[*]", "a.B[]", "[7]", "worker 1", "a.B @ 0x", "x 3",
        ] {
            assert_eq!(Printed::parse(name), None, "{name}");
        }
    }
}
