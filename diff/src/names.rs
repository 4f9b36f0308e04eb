//! Interned labels of trie nodes, as reports show them. A trie node represents all objects of one class that one
//! reference holds. A label is the text of this reference or of this class.

use std::borrow::Cow;
use std::collections::HashMap;

use heapdiff_sites::packages::is_jdk;
use hprof::answers::Hold;
use hprof::{ClassIndex, ObjectIndex, Snapshot};

pub(crate) use heapdiff_sites::types::stable;

/// The index of a label in the list of labels of a dump.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Name(pub(crate) u32);

/// The kinds of labels. A label names a reference of some kind, or a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum LabelKind {
    /// An instance field of an application class.
    ApplicationField,
    /// An instance field of a JDK class.
    RuntimeField,
    /// A static field of an application class.
    ApplicationStatic,
    /// A static field of a JDK class.
    RuntimeStatic,
    /// An array element.
    Element,
    /// Several paths lead to the object, so no single reference holds it.
    Shared,
    /// A GC root, or a link between classes, loaders and threads.
    Structure,
    /// The name of a class.
    Class,
}

/// The text and kind of a label, independent of a dump.
pub(crate) type Label = (String, LabelKind);

/// The kinds of labels. The index of a kind is its number in summary files.
pub(crate) const KINDS: [LabelKind; 8] = [
    LabelKind::ApplicationField,
    LabelKind::RuntimeField,
    LabelKind::ApplicationStatic,
    LabelKind::RuntimeStatic,
    LabelKind::Element,
    LabelKind::Shared,
    LabelKind::Structure,
    LabelKind::Class,
];

/// The label of objects that are reachable on several paths.
pub(crate) const SEVERAL_PATHS: &str = "(several paths)";

/// Interned labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    list: Vec<(Box<str>, LabelKind)>,
    index: HashMap<(Box<str>, LabelKind), Name>,
}

impl Names {
    pub(crate) fn intern(&mut self, text: &str, kind: LabelKind) -> Name {
        let key = (Box::from(text), kind);
        if let Some(&name) = self.index.get(&key) {
            return name;
        }
        let name = Name(self.list.len() as u32);
        self.list.push(key.clone());
        self.index.insert(key, name);
        name
    }

    /// Returns all labels, sorted by their numbers.
    pub(crate) fn labels(&self) -> &[(Box<str>, LabelKind)] {
        &self.list
    }

    pub(crate) fn find(&self, text: &str, kind: LabelKind) -> Option<Name> {
        self.index.get(&(Box::from(text), kind)).copied()
    }

    /// Returns the label that is the name of a class.
    pub(crate) fn find_class(&self, text: &str) -> Option<Name> {
        self.find(text, LabelKind::Class)
    }

    #[must_use]
    pub(crate) fn text(&self, name: Name) -> &str {
        &self.list[name.0 as usize].0
    }

    #[must_use]
    pub(crate) fn kind(&self, name: Name) -> LabelKind {
        self.list[name.0 as usize].1
    }
}

/// Returns the name of an object's class in the form that comparisons use. For the class object of `C`, this is `class
/// C`.
pub(crate) fn name_of(snapshot: &Snapshot, object: ObjectIndex) -> String {
    let name = snapshot.name(object);
    match stable(&name) {
        Cow::Borrowed(_) => name,
        Cow::Owned(stable) => stable,
    }
}

/// True if [`name_of`] returns `name` for an object. Most calls do not allocate a string, because they only borrow the
/// name of the class.
pub(crate) fn is_named(snapshot: &Snapshot, object: ObjectIndex, name: &str) -> bool {
    match snapshot.class(object) {
        Some(class) if snapshot.represents(object).is_none() => stable(&class.name) == name,
        _ => name_of(snapshot, object) == name,
    }
}

/// True if a class belongs to the JDK rather than to the application.
pub(crate) fn is_runtime(snapshot: &Snapshot, class: ClassIndex) -> bool {
    let class = &snapshot.classes()[class];
    class.loader.is_null() || is_jdk(&class.name)
}

/// True if a class, or the element type of an array, is an application class: neither a JDK class nor a primitive type.
pub(crate) fn is_application_class_name(name: &str) -> bool {
    !is_jdk(name) && !is_primitive(name.trim_end_matches("[]"))
}

/// True for a class that the JVM or a library generates while a program runs: hidden classes, lambdas, proxies,
/// accessors.
pub(crate) fn is_generated(name: &str) -> bool {
    const PARTS: [&str; 5] = [
        "/",
        "$$",
        "$Proxy",
        "GeneratedConstructor",
        "GeneratedMethod",
    ];
    PARTS.iter().any(|p| name.contains(p))
}

/// True for a JDK class whose objects serve unrelated purposes, such as `String`. The path to one object of such a
/// class does not show what holds the other objects of the class.
pub(crate) fn is_general_purpose_class(name: &str) -> bool {
    let special = name.starts_with("jdk.internal.ref.") || name == "java.lang.VirtualThread";
    is_jdk(name) && !special
}

/// True if a class belongs to a collection library. Its fields are internals, like those of `java.util.HashMap`:
/// readers want to know the field that holds the collection.
fn is_collection_library(name: &str) -> bool {
    const PREFIXES: [&str; 12] = [
        "cern.colt.",
        "clojure.lang.",
        "com.carrotsearch.hppc.",
        "com.github.benmanes.caffeine.",
        "com.google.common.cache.",
        "gnu.trove.",
        "io.netty.util.Recycler",
        "it.unimi.dsi.",
        "org.ehcache.",
        "org.jctools.",
        "org.pcollections.",
        "org.roaringbitmap.",
    ];
    const PACKAGES: [&str; 4] = ["collect", "collection", "collections", "jctools"];
    PREFIXES.iter().any(|p| name.starts_with(p))
        || name.split('.').any(|part| PACKAGES.contains(&part))
}

/// True if objects of a class only store what other code puts into them. This applies to JDK classes and to collection
/// libraries.
pub(crate) fn is_passive_container(snapshot: &Snapshot, class: ClassIndex) -> bool {
    is_runtime(snapshot, class) || is_collection_library(&snapshot.classes()[class].name)
}

/// True if a field is internal to a container. Exception: fields of the JDK's list of cleaners are not internal, so
/// that a report names them as the holder of the cleaners.
pub(crate) fn is_inside(field: &str) -> bool {
    is_container(field) && !field.starts_with("jdk.internal.ref.CleanerImpl.")
}

/// True if objects of a class only store what is put into them. Such an object can contain what accumulates, but does
/// not count as what accumulates.
pub(crate) fn is_container(name: &str) -> bool {
    let object_array = name.ends_with("[]") && !is_primitive_array(name);
    object_array
        || name.starts_with("java.util.")
        || name.starts_with("java.lang.ref.")
        || name.starts_with("java.lang.ThreadLocal")
        || name.starts_with("jdk.internal.ref.")
}

/// True for collections of the JDK and of other libraries, including their nodes and arrays.
pub(crate) fn is_collection_part(name: &str) -> bool {
    is_container(name) || is_collection_library(name)
}

/// True if objects of a JDK class can be links of a chain that consists of several classes, such as chained
/// `CompletableFuture`s. Collections cannot: a collection inside another collection is not a chain.
pub(crate) fn is_chain_link_class(name: &str) -> bool {
    let completion = name.starts_with("java.util.concurrent.CompletableFuture");
    is_jdk(name) && (completion || !is_container(name))
}

fn is_primitive_array(name: &str) -> bool {
    name.strip_suffix("[]").is_some_and(is_primitive)
}

pub(crate) fn is_primitive(name: &str) -> bool {
    matches!(
        name,
        "boolean" | "char" | "float" | "double" | "byte" | "short" | "int" | "long"
    )
}

/// Returns the label for the reference through which an object's dominator holds it.
pub(crate) fn hold_label(
    snapshot: &Snapshot,
    hold: Hold,
    holder: Option<ObjectIndex>,
) -> (String, LabelKind) {
    let classes = snapshot.classes();
    match hold {
        Hold::Field(class, i) => {
            let class_name = &classes[class].name;
            // The fields of generated classes count as JDK fields, because no programmer wrote them. An example is a
            // field for a variable that a lambda captures.
            let runtime = is_runtime(snapshot, class)
                || is_collection_library(class_name)
                || is_generated(class_name);
            let class = &classes[class];
            let field = class.fields.get(usize::from(i)).map_or("?", |f| &f.name);
            let kind = if runtime {
                LabelKind::RuntimeField
            } else {
                LabelKind::ApplicationField
            };
            (format!("{}.{field}", stable(&class.name)), kind)
        }
        Hold::Static(class, i) => {
            let runtime = is_runtime(snapshot, class);
            let class = &classes[class];
            let field = class.statics.get(usize::from(i)).map_or("?", |f| &f.name);
            let kind = if runtime {
                LabelKind::RuntimeStatic
            } else {
                LabelKind::ApplicationStatic
            };
            (format!("{}.{field}", stable(&class.name)), kind)
        }
        Hold::Element => {
            let name = holder.map_or_else(|| "[]".to_owned(), |h| name_of(snapshot, h));
            (
                format!("{}[*]", name.strip_suffix("[]").unwrap_or(&name)),
                LabelKind::Element,
            )
        }
        Hold::Shared => (SEVERAL_PATHS.to_owned(), LabelKind::Shared),
        Hold::Class => ("<class>".to_owned(), LabelKind::Structure),
        Hold::Loader => ("<classes of the loader>".to_owned(), LabelKind::Structure),
        Hold::ClassPart => ("<part of the class>".to_owned(), LabelKind::Structure),
        Hold::Local => ("<local variable>".to_owned(), LabelKind::Structure),
    }
}
