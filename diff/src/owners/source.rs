//! Names of class loaders, and the jars from which classes were loaded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hprof::answers::{Content, Value};
use hprof::{ClassIndex, ObjectIndex, Snapshot};

use crate::values::{objects, strings};

/// Returns a name for each class loader. The name of a `URLClassLoader` without a name is the first jar or folder on
/// its path. Loaders may have the same name.
pub(super) fn loader_names(snapshot: &Snapshot, loaders: &[ObjectIndex]) -> Vec<String> {
    // Since JDK 9, `ClassLoader` declares the field `name`. Jetty's class loaders have the field `_name`.
    let given = ["contextName", "_name", "name"].map(|field| strings(snapshot, loaders, field));
    let contexts = tomcat_contexts(snapshot, loaders);
    let paths = first_paths(snapshot, loaders);
    let mut names: Vec<String> = Vec::new();
    for (at, &loader) in loaders.iter().enumerate() {
        let given = given.iter().find_map(|names| names[at].as_deref());
        let given = contexts[at].as_deref().or(given);
        let class = snapshot.name(loader);
        let short = class.rsplit('.').next().unwrap_or(&class);
        let given = given.filter(|name| !name.is_empty());
        names.push(match given.or(paths[at].as_deref().map(last_part)) {
            Some("app") => "application class loader".to_owned(),
            Some(name) => format!("{name} ({short})"),
            None => class,
        });
    }
    names
}

/// Appends the address of the loader to names that several loaders have.
fn make_unique(
    snapshot: &Snapshot,
    loaders: &[ObjectIndex],
    mut names: Vec<String>,
) -> Vec<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in &names {
        *counts.entry(name.clone()).or_default() += 1;
    }
    let ids = snapshot.ids(loaders);
    for (name, id) in names.iter_mut().zip(ids) {
        if counts[name] > 1 {
            *name = format!("{name}@{:#x}", id.map_or(0, |id| id.0));
        }
    }
    names
}

/// Returns the name of the class loader of each class that shares its name with another class. A report needs these
/// names to distinguish the classes.
#[must_use]
pub fn loaders_of_namesakes(
    snapshot: &Snapshot,
    classes: &BTreeSet<ClassIndex>,
) -> BTreeMap<ClassIndex, String> {
    let all = snapshot.classes();
    let has_namesake = |class: &ClassIndex| all.by_name(&all[*class].name).len() > 1;
    let (ambiguous, loaders): (Vec<ClassIndex>, Vec<ObjectIndex>) = classes
        .iter()
        .copied()
        .filter(has_namesake)
        .filter_map(|class| Some((class, snapshot.find(all[class].loader)?)))
        .unzip();
    let mut distinct = loaders.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let names = loader_names(snapshot, &distinct);
    let names = make_unique(snapshot, &distinct, names);
    let name = |loader| distinct.binary_search(loader).map_or("", |at| &names[at]);
    let loaders = loaders.iter().map(|loader| name(loader).to_owned());
    ambiguous.into_iter().zip(loaders).collect()
}

/// Returns the name of the web application of each class loader of Tomcat.
fn tomcat_contexts(snapshot: &Snapshot, loaders: &[ObjectIndex]) -> Vec<Option<String>> {
    let resources = objects(snapshot, loaders, "resources");
    let contexts = follow(snapshot, &resources, "context");
    map_known(&contexts, |contexts| strings(snapshot, contexts, "name"))
}

/// Returns the path of the first jar or folder of each `URLClassLoader`.
fn first_paths(snapshot: &Snapshot, loaders: &[ObjectIndex]) -> Vec<Option<String>> {
    let lists = follow(snapshot, &objects(snapshot, loaders, "ucp"), "path");
    let first = |list: Option<ObjectIndex>| {
        let contents = snapshot.contents(list?, 0..1)?;
        contents.entries.first()?.value.object()
    };
    let urls: Vec<Option<ObjectIndex>> = lists.into_iter().map(first).collect();
    map_known(&urls, |urls| url_paths(snapshot, urls))
}

/// Returns the object in a field of each object.
fn follow(
    snapshot: &Snapshot,
    from: &[Option<ObjectIndex>],
    field: &str,
) -> Vec<Option<ObjectIndex>> {
    map_known(from, |from| objects(snapshot, from, field))
}

/// Returns the result of `read` for each known object, and `None` for the others.
fn map_known<T>(
    objects: &[Option<ObjectIndex>],
    read: impl FnOnce(&[ObjectIndex]) -> Vec<Option<T>>,
) -> Vec<Option<T>> {
    let known: Vec<ObjectIndex> = objects.iter().flatten().copied().collect();
    let mut results = read(&known).into_iter();
    let result = |object: &Option<ObjectIndex>| object.and_then(|_| results.next().flatten());
    objects.iter().map(result).collect()
}

/// Returns the path of each `java.net.URL`.
fn url_paths(snapshot: &Snapshot, urls: &[ObjectIndex]) -> Vec<Option<String>> {
    let [path, file] = ["path", "file"].map(|field| strings(snapshot, urls, field));
    path.into_iter()
        .zip(file)
        .map(|(path, file)| path.or(file))
        .collect()
}

/// Returns the path of the jar, folder or module from which a class was loaded.
pub(crate) fn code_source(snapshot: &Snapshot, class: ClassIndex) -> Option<String> {
    paths(snapshot, &[class]).pop()?
}

/// Returns the last part of a path: `shop-1.2.jar`, or `classes/` for a folder.
pub(crate) fn last_part(path: &str) -> &str {
    let end = path.trim_end_matches(['!', '/']);
    let start = end.rfind('/').map_or(0, |at| at + 1);
    // The path of a jar inside of another jar ends with `!/`, and that of a folder with `/`.
    if path.ends_with("!/") {
        &end[start..]
    } else {
        &path[start..]
    }
}

/// Returns the path of the jar, folder or module of each class.
pub(super) fn paths(snapshot: &Snapshot, classes: &[ClassIndex]) -> Vec<Option<String>> {
    let domains = domains(snapshot, classes);
    let unique: BTreeSet<ObjectIndex> = domains.iter().flatten().copied().collect();
    let unique: Vec<ObjectIndex> = unique.into_iter().collect();
    let urls = follow(
        snapshot,
        &objects(snapshot, &unique, "codesource"),
        "location",
    );
    let (known, urls): (Vec<ObjectIndex>, Vec<ObjectIndex>) = unique
        .iter()
        .zip(urls)
        .filter_map(|(domain, url)| Some((*domain, url?)))
        .unzip();
    let paths = url_paths(snapshot, &urls);
    let path_of: HashMap<ObjectIndex, Option<String>> = known.into_iter().zip(paths).collect();
    let path = |domain: &Option<ObjectIndex>| path_of.get(domain.as_ref()?)?.clone();
    domains.iter().map(path).collect()
}

/// Returns the protection domain of each class.
fn domains(snapshot: &Snapshot, classes: &[ClassIndex]) -> Vec<Option<ObjectIndex>> {
    let named = snapshot.classes().by_name("java.security.ProtectionDomain");
    let is_domain = |object: &ObjectIndex| {
        let class = snapshot.class_of(*object);
        class.is_some_and(|c| named.iter().any(|n| snapshot.classes().is_subclass(c, *n)))
    };
    let ids: Vec<ObjectIndex> = classes.iter().map(|c| ObjectIndex(c.0)).collect();
    let domain = |object: &ObjectIndex| {
        let record = snapshot.read(*object).ok()?;
        match record.content {
            Content::Class(class) => {
                let mut others = class.others.into_iter().filter_map(Value::object);
                others.find(is_domain)
            }
            _ => None,
        }
    };
    ids.iter().map(domain).collect()
}
