//! Errors of selectors that name no object of a dump.

use crate::ids::ObjectId;

/// The reason why a selector names no object of a dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No object is at the address.
    #[error("this dump has no object at {id}{}", nearest(.before, .after))]
    NoObject {
        /// The address.
        id: ObjectId,
        /// The nearest object before the address.
        before: Option<ObjectId>,
        /// The nearest object after the address.
        after: Option<ObjectId>,
    },
    /// No class has the name.
    #[error("this dump has no class {name}{}", alternatives(.similar))]
    NoClass {
        /// The name.
        name: String,
        /// Classes with similar names, the most similar first.
        similar: Vec<String>,
    },
    /// No class matches the regular expression.
    #[error("no class in this dump matches /{pattern}/{}", alternatives(.similar))]
    NoMatch {
        /// The regular expression.
        pattern: String,
        /// Classes that match when case is ignored, or whose names are similar.
        similar: Vec<String>,
    },
    /// The class exists but has no instances.
    #[error("{class} has no instances in this dump{}", list_lines(.subclasses))]
    NoInstances {
        /// The class.
        class: String,
        /// The subclasses with most instances, each with its number of instances.
        subclasses: Vec<(String, u64)>,
    },
    /// Classes match the regular expression, but have no instances.
    #[error("the classes that match /{pattern}/ have no instances in this dump: {}", list_first(.names, *.count))]
    NoneMatching {
        /// The regular expression.
        pattern: String,
        /// Number of classes that match.
        count: u64,
        /// The names of the first of these classes.
        names: Vec<String>,
    },
    /// The class has no such field.
    #[error("{class} has no field {field}{}", alternatives(.similar))]
    NoField {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// The reference fields of the class whose names are similar to `field`.
        similar: Vec<String>,
    },
    /// The named field is null in every instance of its class.
    #[error("{class}.{field} is null in each of the {instances} instances of the class")]
    NullInAll {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// Number of instances.
        instances: u64,
    },
    /// No thread was in the frame.
    #[error("no thread was in {frame} when the dump was taken{}", alternatives(.similar))]
    NoFrame {
        /// Class and method, with or without the line.
        frame: String,
        /// Frames of the method at other lines.
        similar: Vec<String>,
    },
    /// No local variable of the frame refers to an object.
    #[error("no local variable of {frame} refers to an object")]
    NoLocal {
        /// Class and method, with or without the line.
        frame: String,
    },
    /// Reports print these words, but the words do not name an object.
    #[error("{name} is not the name of an object; use the class that the report prints beside it")]
    NoName {
        /// The words.
        name: String,
    },
    /// The selector asks for thread-local values, but the objects are not `ThreadLocal` objects.
    #[error("{name} is not a ThreadLocal")]
    NoThreadLocal {
        /// The name.
        name: String,
    },
    /// No thread has a value of the thread local.
    #[error("no thread has a value of the ThreadLocal {name}")]
    NoValues {
        /// The name.
        name: String,
    },
    /// The field holds no reference.
    #[error("{class}.{field} does not hold an object: it is of type {kind}")]
    Primitive {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// The primitive type of the field.
        kind: &'static str,
    },
    /// The field is null.
    #[error("{class}.{field} is null")]
    Null {
        /// The class.
        class: String,
        /// The field.
        field: String,
    },
    /// The dump has no object at the address in the field.
    #[error("{class}.{field} refers to {id}, but this dump has no object at this address")]
    Dangling {
        /// The class.
        class: String,
        /// The field.
        field: String,
        /// The address in the field.
        id: ObjectId,
    },
}

fn nearest(before: &Option<ObjectId>, after: &Option<ObjectId>) -> String {
    match (before, after) {
        (Some(b), Some(a)) => format!("; the nearest objects are at {b} and {a}"),
        (Some(one), None) | (None, Some(one)) => format!("; the nearest object is at {one}"),
        (None, None) => String::new(),
    }
}

fn alternatives(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

fn list_lines(list: &[(String, u64)]) -> String {
    let one = |(name, count): &(String, u64)| match count {
        1 => format!("1 {name}"),
        _ => format!("{count} {name}"),
    };
    match list {
        [] => String::new(),
        list => {
            let list: Vec<String> = list.iter().map(one).collect();
            format!("; instances of its subclasses: {}", list.join(", "))
        }
    }
}

fn list_first(names: &[String], count: u64) -> String {
    let more = if count > names.len() as u64 {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", names.join(", "))
}
