//! Finds the owners in a dump, and the objects that are assigned to an owner directly.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heapdiff_sites::packages::is_framework;
use hprof::answers::{Anchors, Owner, Value};
use hprof::records::Class;
use hprof::{ClassIndex, ObjectId, ObjectIndex, Snapshot};

use super::{Found, JVM, OwnerKind, source};
use crate::names::{is_generated, is_runtime};
use crate::values::{NAME, objects, strings};

/// Maximum number of packages, if the user does not give the number of parts of their names (`com.acme` has two parts).
pub(crate) const MOST_PACKAGES: usize = 40;
const NO_PACKAGE: &str = "(no package)";
/// The owner of instances whose field is null.
const NULL: &str = "null";
/// Maximum number of characters of the value of a field. Values that are equal up to this length are one owner.
const LONGEST_VALUE: usize = 1000;

/// The reason why there are no owners.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// The dump has no owner of this kind.
    #[error("the dump has no {0}")]
    None(String),
    /// A class or field does not exist.
    #[error("{0}")]
    Unknown(String),
    /// The dump cannot be read.
    #[error(transparent)]
    Dump(#[from] hprof::Error),
}

pub(super) fn owners(
    snapshot: &Snapshot,
    kind: &OwnerKind,
    is_compared: bool,
) -> Result<Found, OwnerError> {
    let none = |what: &str| Err(OwnerError::None(what.to_owned()));
    let found = match kind {
        OwnerKind::Auto => {
            let classes = loaded_classes(snapshot);
            let used: BTreeSet<ObjectId> = classes.map(|(_, class)| class.loader).collect();
            if used.difference(&loaders(snapshot, &SYSTEM)).count() > 1 {
                by_loader(snapshot)
            } else {
                by_package(snapshot, None)
            }
        }
        OwnerKind::Package(parts) => by_package(snapshot, *parts),
        OwnerKind::Jar => by_jar(snapshot),
        OwnerKind::Loader => by_loader(snapshot),
        OwnerKind::Thread => by_thread(snapshot),
        OwnerKind::Bean => by_bean(snapshot),
        OwnerKind::Field(class, field) => by_field(snapshot, class, field, is_compared)?,
    };
    match kind {
        OwnerKind::Bean if found.names.is_empty() => none("beans of Spring or CDI"),
        OwnerKind::Jar if found.names.is_empty() => none("application class whose jar is known"),
        OwnerKind::Thread if found.names.is_empty() => none("threads"),
        _ => Ok(found),
    }
}

/// Collects owners by name.
struct Builder {
    by: &'static str,
    kind: OwnerKind,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    anchors: Anchors,
}

impl Builder {
    /// Creates a builder in which class objects belong to the JVM, and no other object is assigned to an owner.
    fn new(snapshot: &Snapshot, kind: OwnerKind) -> Self {
        let by = match kind {
            OwnerKind::Auto | OwnerKind::Package(_) => "package",
            OwnerKind::Jar => "jar",
            OwnerKind::Loader => "loader",
            OwnerKind::Thread => "thread",
            OwnerKind::Bean => "bean",
            OwnerKind::Field(..) => "field",
        };
        let classes = snapshot.classes().len();
        Self {
            by,
            kind,
            names: Vec::new(),
            numbers: HashMap::new(),
            anchors: Anchors {
                instances: vec![None; classes],
                class_objects: vec![Some(Owner::Jvm); classes],
                ..Anchors::default()
            },
        }
    }

    fn owner(&mut self, name: &str) -> Owner {
        let other_jvm = format!("{JVM} ({})", self.by);
        let name = if name == JVM { &other_jvm } else { name };
        if let Some(number) = self.numbers.get(name) {
            return Owner::Number(*number);
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Owner::Number(number)
    }

    fn add_class(&mut self, class: ClassIndex, name: &str) {
        let owner = Some(self.owner(name));
        self.anchors.instances[class.index()] = owner;
        self.anchors.class_objects[class.index()] = owner;
    }

    fn add_object(&mut self, object: ObjectIndex, name: &str) {
        let owner = self.owner(name);
        self.anchors.objects.insert(object, owner);
    }

    fn build(mut self) -> Found {
        self.anchors.owners = self.names.len() as u32;
        Found {
            by: self.by,
            kind: self.kind,
            names: self.names,
            anchors: self.anchors,
        }
    }
}

/// Class loaders for modules and extensions of the JDK. JDK 9 and later have the first class, JDK 8 has the second.
const PLATFORM: [&str; 2] = [
    "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
    "sun.misc.Launcher$ExtClassLoader",
];
/// The JDK's class loader of the class path. JDK 9 and later have the first class, JDK 8 has the second.
const SYSTEM: [&str; 2] = [
    "jdk.internal.loader.ClassLoaders$AppClassLoader",
    "sun.misc.Launcher$AppClassLoader",
];

/// Returns all classes that are not classes of the JDK.
fn loaded_classes(snapshot: &Snapshot) -> impl Iterator<Item = (ClassIndex, &Class)> {
    let platform = loaders(snapshot, &PLATFORM);
    let classes = snapshot.classes().iter();
    classes.filter(move |(index, class)| {
        !is_runtime(snapshot, *index) && !platform.contains(&class.loader)
    })
}

/// Returns the ids of the class loaders whose class has one of these names.
fn loaders(snapshot: &Snapshot, names: &[&str]) -> BTreeSet<ObjectId> {
    let classes = snapshot.classes().iter();
    let mut loaders: BTreeSet<ObjectId> = classes.map(|(_, class)| class.loader).collect();
    let name = |id| Some(&*snapshot.class(snapshot.find(id)?)?.name);
    loaders.retain(|id| name(*id).is_some_and(|name| names.contains(&name)));
    loaders
}

/// Assigns classes to packages. For a class of a framework, only the class object is assigned to the framework. Its
/// instances serve the application, so they are not assigned to the framework.
fn by_package(snapshot: &Snapshot, parts: Option<usize>) -> Found {
    let package = |name: &str| {
        name.rsplit_once('.')
            .map_or(NO_PACKAGE, |(p, _)| p)
            .to_owned()
    };
    let mut builder = Builder::new(snapshot, OwnerKind::Package(parts));
    let mut own = Vec::new();
    for (index, class) in loaded_classes(snapshot) {
        let package = package(&class.name);
        if is_framework(&class.name) {
            let owner = builder.owner(cut(&package, 2));
            builder.anchors.class_objects[index.index()] = Some(owner);
        } else if !(is_generated(&class.name) && package == NO_PACKAGE) {
            own.push((index, package));
        }
    }
    let packages: BTreeSet<&str> = own.iter().map(|(_, package)| &**package).collect();
    let parts = parts.unwrap_or_else(|| {
        let count = |parts| {
            packages
                .iter()
                .map(|p| cut(p, parts))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let deepest = packages.iter().map(|p| p.split('.').count()).max();
        let mut all = (1..=deepest.unwrap_or(1)).rev();
        all.find(|parts| count(*parts) <= MOST_PACKAGES)
            .unwrap_or(1)
    });
    for (class, package) in &own {
        builder.add_class(*class, cut(package, parts));
    }
    builder.kind = OwnerKind::Package(Some(parts));
    builder.build()
}

/// Returns the first `parts` parts of a package's name.
pub(super) fn cut(package: &str, parts: usize) -> &str {
    let mut dots = package.match_indices('.').map(|(at, _)| at);
    match parts.checked_sub(1).and_then(|last| dots.nth(last)) {
        Some(end) => &package[..end],
        None => package,
    }
}

/// Assigns each class to an owner that represents its class loader. The loader object is assigned to the same owner,
/// not to the loader that defined the loader's own class.
fn by_loader(snapshot: &Snapshot) -> Found {
    let mut builder = Builder::new(snapshot, OwnerKind::Loader);
    let mut classes: BTreeMap<ObjectIndex, Vec<ClassIndex>> = BTreeMap::new();
    for (index, class) in loaded_classes(snapshot) {
        if let Some(loader) = snapshot.find(class.loader) {
            classes.entry(loader).or_default().push(index);
        }
    }
    let (loaders, classes): (Vec<ObjectIndex>, Vec<Vec<ClassIndex>>) = classes.into_iter().unzip();
    let names = source::loader_names(snapshot, &loaders);
    for ((loader, classes), name) in loaders.into_iter().zip(classes).zip(names) {
        builder.add_object(loader, &name);
        for class in classes {
            builder.add_class(class, &name);
        }
    }
    builder.build()
}

fn by_jar(snapshot: &Snapshot) -> Found {
    let mut builder = Builder::new(snapshot, OwnerKind::Jar);
    let classes: Vec<ClassIndex> = loaded_classes(snapshot).map(|(class, _)| class).collect();
    for (class, path) in classes.iter().zip(source::paths(snapshot, &classes)) {
        if let Some(path) = path {
            builder.add_class(*class, &path);
        }
    }
    builder.build()
}

fn by_thread(snapshot: &Snapshot) -> Found {
    let mut builder = Builder::new(snapshot, OwnerKind::Thread);
    let threads = instances_of(snapshot, "java.lang.Thread");
    let names = strings(snapshot, &threads, "name");
    for (thread, name) in threads.iter().zip(names) {
        let name = name.filter(|name| !name.is_empty());
        let name = name.map_or_else(|| "threads without a name".to_owned(), |n| pool(&n));
        builder.add_object(*thread, &name);
    }
    builder.build()
}

/// Returns the name of a thread with `*` in place of a number at its end.
pub(super) fn pool(thread: &str) -> String {
    let stem = thread.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == thread.len() || stem.is_empty() {
        return thread.to_owned();
    }
    format!("{stem}*")
}

/// A class of a CDI container that stores a bean in its field `instance`.
const CDI: [&str; 3] = [
    "org.jboss.weld.contexts.SerializableContextualInstanceImpl",
    "io.quarkus.arc.impl.ContextInstanceHandleImpl",
    "io.quarkus.arc.impl.EagerInstanceHandle",
];
const SPRING: &str = "org.springframework.beans.factory.support.DefaultSingletonBeanRegistry";

fn by_bean(snapshot: &Snapshot) -> Found {
    let mut builder = Builder::new(snapshot, OwnerKind::Bean);
    let factories = instances_of(snapshot, SPRING);
    for singletons in objects(snapshot, &factories, "singletonObjects")
        .into_iter()
        .flatten()
    {
        let Some(contents) = snapshot.contents(singletons, 0..u64::MAX) else {
            continue;
        };
        let entries = contents.entries.iter();
        let (keys, beans): (Vec<ObjectIndex>, Vec<ObjectIndex>) = entries
            .filter_map(|entry| Some((entry.key?.object()?, entry.value.object()?)))
            .unzip();
        for (bean, name) in beans.iter().zip(snapshot.strings(&keys, NAME)) {
            if let Some(name) = name {
                builder.add_object(*bean, &name);
            }
        }
    }
    for class in CDI {
        let handles = instances_of(snapshot, class);
        for bean in objects(snapshot, &handles, "instance")
            .into_iter()
            .flatten()
        {
            builder.add_object(bean, &snapshot.name(bean));
        }
    }
    builder.build()
}

fn by_field(
    snapshot: &Snapshot,
    class: &str,
    field: &str,
    is_compared: bool,
) -> Result<Found, OwnerError> {
    let kind = OwnerKind::Field(class.to_owned(), field.to_owned());
    let mut builder = Builder::new(snapshot, kind);
    let classes = snapshot.classes();
    let declares = |c: ClassIndex| classes[c].fields.iter().any(|f| &*f.name == field);
    let named = classes.by_name(class);
    if named.is_empty() {
        return Err(OwnerError::Unknown(format!(
            "the dump has no class {class}"
        )));
    }
    let chain: Vec<ClassIndex> = named.iter().flat_map(|c| classes.chain(*c)).collect();
    if !chain.iter().copied().any(declares) {
        let is_static = |c: ClassIndex| classes[c].statics.iter().any(|f| &*f.name == field);
        return Err(OwnerError::Unknown(if chain.into_iter().any(is_static) {
            format!("{class}.{field} is a static field; owners need a field of instances")
        } else {
            format!("{class} has no field {field}")
        }));
    }
    let instances = instances_of(snapshot, class);
    let values = snapshot.field_values(&instances, [field]);
    let values: Vec<Option<Value>> = values.into_iter().map(|v| v?[0]).collect();
    let objects: Vec<ObjectIndex> = values.iter().filter_map(|v| (*v)?.object()).collect();
    let names: HashMap<ObjectIndex, String> = value_names(snapshot, &objects, is_compared);
    for (instance, value) in instances.iter().zip(values) {
        let name = match value {
            None => continue,
            Some(Value::Object(_, None)) => NULL.to_owned(),
            Some(Value::Object(_, Some(object))) => names[&object].clone(),
            Some(primitive) => primitive_text(primitive),
        };
        builder.add_object(*instance, &name);
    }
    Ok(builder.build())
}

fn primitive_text(value: Value) -> String {
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Char(unit) => String::from_utf16_lossy(&[unit]),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        other => other.integer().unwrap_or(0).to_string(),
    }
}

/// Returns a name for each object: the text of a string, the string in the field `name` (as in an enum constant), the
/// value in a box, the text of a UUID, or else the class and the address of the object. With `is_compared`, the name has
/// no address, because a GC can move the object.
fn value_names(
    snapshot: &Snapshot,
    objects: &[ObjectIndex],
    is_compared: bool,
) -> HashMap<ObjectIndex, String> {
    let unique: BTreeSet<ObjectIndex> = objects.iter().copied().collect();
    let objects: Vec<ObjectIndex> = unique.into_iter().collect();
    let texts = snapshot.strings(&objects, LONGEST_VALUE);
    let enums = strings(snapshot, &objects, "name");
    let boxes = snapshot.field_values(&objects, ["value"]);
    let uuids = snapshot.field_values(&objects, ["mostSigBits", "leastSigBits"]);
    let ids = snapshot.ids(&objects);
    let found = objects
        .iter()
        .zip(texts)
        .zip(enums)
        .zip(boxes)
        .zip(uuids)
        .zip(ids);
    found
        .map(|(((((object, text), constant), number), uuid), id)| {
            let number = || {
                let value = number?[0].filter(|value| !matches!(value, Value::Object(..)));
                value.map(primitive_text)
            };
            // Put quotes around a string that looks like a missing value.
            let text = text.map(|text| match &*text {
                "" | NULL => format!("\"{text}\""),
                _ => text,
            });
            let uuid = || match uuid? {
                [Some(Value::Long(high)), Some(Value::Long(low))] => {
                    Some(uuid_text(high.cast_unsigned(), low.cast_unsigned()))
                }
                _ => None,
            };
            let nameless = || {
                let class = snapshot.name(*object);
                match id.filter(|_| !is_compared) {
                    Some(id) => format!("{class}@{:#x}", id.0),
                    None => format!("{class} (values without a name)"),
                }
            };
            let name = text.or(constant).or_else(number).or_else(uuid);
            let name = name.unwrap_or_else(nameless);
            (*object, name)
        })
        .collect()
}

/// Returns the text of a `java.util.UUID`, as its method `toString` does.
fn uuid_text(high: u64, low: u64) -> String {
    let digits = format!("{high:016x}{low:016x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    parts.join("-")
}

/// Returns the instances of a class and its subclasses, whatever loaders define the class.
pub(super) fn instances_of(snapshot: &Snapshot, class: &str) -> Vec<ObjectIndex> {
    let named = snapshot.classes().by_name(class);
    let is_own = |c: ClassIndex| named.iter().any(|n| snapshot.classes().is_subclass(c, *n));
    let all = snapshot.classes().iter().map(|(index, _)| index);
    let classes: Vec<ClassIndex> = all.filter(|c| is_own(*c)).collect();
    snapshot.instances(&classes)
}
