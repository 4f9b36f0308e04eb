//! The points in methods of collections at which hooks are called. Most points are entries of methods. Such a method
//! runs once for each element that is put or removed, or once for each read. If one of these methods calls another one,
//! only one of the two has a hook, so nothing is counted twice.
//!
//! If no method runs once per element, hooks are called at steps within methods instead. A step is an instruction that
//! sets the field with the number of elements, or a call that has returned.

use heapdiff_bytecode::{Does, Entry, Name, Push, Step};
use heapdiff_sites::usage::Kind;

use super::collections;
use super::hook::{BY_ARRAY, BY_ARRAYS, BY_CHANGES, BY_DIFFERENCE, BY_LONG, BY_NUMBER, BY_SIZES};

/// How the inserted code gets the collection at a point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Collection {
    /// The collection is `this`.
    This,
    /// The collection is the argument in this local variable.
    Argument(u8),
    /// The collection is in a field of `this`: declaring class, name and type.
    Field(&'static str, &'static str, &'static str),
    /// The collection is in a field of an argument. The values are the local variable with the argument, and the
    /// field's declaring class, name and type.
    ArgumentField(u8, &'static str, &'static str, &'static str),
}

/// A quick test that shows whether a collection may be large. The test uses a number that never decreases, so a watched
/// collection always passes the test. The only exception is `CopyOnWriteArrayList`: the length of its array decreases
/// when elements are removed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gate {
    /// Compares the collection's modification count, which is in this field, with a limit.
    Changes(&'static str),
    /// Compares the length of the collection's array with a limit. The array is in this field and never null.
    Length(&'static str),
    /// The inserted code does not test the collection. The hook always looks it up in the table of watched collections.
    Open,
    /// Compares the length of the collection's array, which may be null, with a limit. The first string is the name of
    /// the array's field, and the second string is the field's type. The hook does not get the size of the collection.
    Array(&'static str, &'static str),
    /// The inserted code does not test the size, because only a traversal can determine it. Instead, a collection
    /// counts as large once it has grown by 256 elements (`LARGE` in the hooks' class).
    Grown,
}

/// How the inserted code gets the number of elements of a collection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    Field(&'static str),
    /// The value of a field. When an element is put, the field is increased before the hook is called. So the inserted
    /// code subtracts one from the value.
    After(&'static str),
    /// An `AtomicInteger` in a field.
    Atomic(&'static str),
    /// The result of the method `size`.
    Asked,
    /// The length of an array in a field that is never null.
    Length(&'static str),
    /// The number of elements is not known. For such a collection, [`Gate::Grown`] determines whether it is large.
    Unknown,
}

/// The number of elements that a call puts, removes or reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Many {
    One,
    /// One element, or none if the collection is empty.
    IfAny,
    /// The number of elements is not known when the hook is called. It is computed from the change of the collection's
    /// size.
    Some,
    /// All elements of the collection.
    All,
    /// The number of elements of the collection, or the number in this local variable, whichever is smaller.
    AtMost(u8),
    /// The size of a range: the end in the second local variable minus the start in the first local variable.
    Range(u8, u8),
    /// The number in this local variable of type `long`. It is negative if elements are removed.
    Difference(u8),
    /// The difference in length between the new array, which is in this local variable, and the old array, which is in
    /// this field.
    Longer(u8, &'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    kind: Kind,
    many: Many,
    /// Names of the methods that call the hook. A name may be followed by the beginning of the method's descriptor.
    /// `first|second` means `second` if the class has a method `second`, and otherwise `first`.
    methods: &'static [&'static str],
}

/// A kind of step within a method: an instruction at which elements are put or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Steps {
    /// An instruction in any method that sets this field, which contains the number of elements.
    Size(&'static str),
    /// A call of the method `class.name` has returned. Only calls in the methods `within` count. If `within` is empty,
    /// calls in all methods count.
    After {
        within: &'static [&'static str],
        class: &'static str,
        name: &'static str,
        kind: Kind,
        many: Returned,
    },
}

/// The number of elements that a call has put or removed, derived from its result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Returned {
    One,
    /// One if the call returned true, otherwise zero.
    IfTrue,
}

/// A class whose methods call hooks. The class is a collection or belongs to a collection, like a view or an iterator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) class: &'static str,
    /// The class of the collection to which `class` belongs.
    pub(super) of: &'static str,
    pub(super) collection: Collection,
    pub(super) gate: Gate,
    pub(super) size: Size,
    pub(super) points: &'static [Point],
    pub(crate) steps: &'static [Steps],
}

/// Returns the description of a collection class without hooks. The caller adds the points at which hooks are called.
pub(super) const fn watched_class(class: &'static str) -> Watched {
    Watched {
        class,
        of: class,
        collection: Collection::This,
        gate: Gate::Open,
        size: Size::Asked,
        points: &[],
        steps: &[],
    }
}

pub(super) const fn put(methods: &'static [&'static str]) -> Point {
    point(Kind::Put, Many::One, methods)
}

pub(super) const fn removed(methods: &'static [&'static str]) -> Point {
    point(Kind::Removed, Many::One, methods)
}

pub(super) const fn cleared(methods: &'static [&'static str]) -> Point {
    point(Kind::Removed, Many::All, methods)
}

pub(super) const fn read(methods: &'static [&'static str]) -> Point {
    point(Kind::Read, Many::One, methods)
}

pub(super) const fn point(kind: Kind, many: Many, methods: &'static [&'static str]) -> Point {
    Point {
        kind,
        many,
        methods,
    }
}

/// Returns the description of the class with this name.
pub(crate) fn of(class: &str) -> Option<&'static Watched> {
    collections::ALL
        .iter()
        .find(|watched| watched.class == class)
}

/// A field or a method without arguments that must exist: class, name and descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    Field([&'static str; 3]),
    Method([&'static str; 3]),
}

impl Watched {
    /// Returns the hook call to insert at the entry of a method, or `None` if the method is not counted. `all` contains
    /// all methods of the class.
    pub(crate) fn entry(
        &self,
        method: &(String, String),
        all: &[(String, String)],
    ) -> Option<Entry<'static>> {
        let is_meant = |meant: &str| match meant.split_once('|') {
            Some((first, rather)) => {
                if all.iter().any(|method| is_named(method, rather)) {
                    is_named(method, rather)
                } else {
                    is_named(method, first)
                }
            }
            None => is_named(method, meant),
        };
        let point = |point: &&Point| point.methods.iter().any(|meant| is_meant(meant));
        let point = self.points.iter().find(point)?;
        Some(self.call(point))
    }

    /// Returns the hook call to insert at an instruction that puts or removes elements. Also returns the index of the
    /// entry in `steps` that matches the instruction. Returns `None` if the instruction is not counted.
    pub(crate) fn step(&self, step: &Step<'_>) -> Option<(usize, Entry<'static>)> {
        let named = |meant: [&str; 2]| {
            [step.owner, step.name] == meant.map(|name| Name::new(name.as_bytes()))
        };
        let is_it = |steps: &Steps| match *steps {
            Steps::Size(name) => {
                step.does == Does::Sets
                    && named([self.of, name])
                    && step.descriptor.as_bytes() == b"I"
            }
            Steps::After {
                within,
                class,
                name,
                ..
            } => {
                let method = step.method.0.as_bytes();
                step.does == Does::Calls
                    && named([class, name])
                    && (within.is_empty() || within.iter().any(|w| w.as_bytes() == method))
            }
        };
        let at = self.steps.iter().position(is_it)?;
        Some((at, self.hook_entry(&self.steps[at])))
    }

    fn hook_entry(&self, steps: &Steps) -> Entry<'static> {
        match *steps {
            Steps::Size(name) => {
                // The stack contains the collection and the new size, which the original instruction needs. So the
                // pushes below keep these two values and add copies for the hook. The arguments of the hook are: new
                // size, collection, current size, and the number for the quick test ([`Gate`]). Without a quick test,
                // this number is -1.
                let size = Push::Field(self.of, name, "I");
                let mut pushes = vec![Push::PairAgain, Push::Swap, Push::Again];
                match self.gate {
                    Gate::Changes(changes) => {
                        let changes = Push::Field(self.of, changes, "I");
                        pushes.extend([Push::Again, size, Push::Swap, changes]);
                    }
                    Gate::Length(name) => {
                        let array = Push::Field(self.of, name, ELEMENTS);
                        pushes.extend([Push::Again, size, Push::Swap, array, Push::Length]);
                    }
                    _ => pushes.extend([size, Push::Constant(-1)]),
                }
                Entry {
                    pushes,
                    hook: BY_SIZES,
                }
            }
            Steps::After { kind, many, .. } => {
                let mut pushes = Vec::new();
                if let Returned::IfTrue = many {
                    pushes.push(Push::Again);
                }
                pushes.extend(self.collection());
                pushes.push(match many {
                    Returned::One => Push::Constant(1),
                    Returned::IfTrue => Push::Swap,
                });
                pushes.push(Push::Constant(kind.code()));
                Entry {
                    pushes,
                    hook: BY_NUMBER,
                }
            }
        }
    }

    fn call(&self, point: &Point) -> Entry<'static> {
        let collection = self.collection();
        let field = |name, kind| {
            let field = Push::Field(self.of, name, kind);
            [&collection[..], &[field]].concat()
        };
        let length = |name| [field(name, ELEMENTS), vec![Push::Length]].concat();
        let size = || match self.size {
            Size::Field(name) => field(name, "I"),
            Size::After(name) => {
                let mut size = field(name, "I");
                if point.kind == Kind::Put {
                    size.extend([Push::Constant(1), Push::Less]);
                }
                size
            }
            Size::Atomic(name) => {
                let get = Push::Call(ATOMIC, "get", "()I");
                [field(name, ATOMIC_TYPE), vec![get]].concat()
            }
            Size::Asked => [&collection[..], &[Push::Own(self.of, "size", "()I")]].concat(),
            Size::Length(name) => length(name),
            Size::Unknown => vec![Push::Constant(-1)],
        };
        let mut pushes = collection.clone();
        let gate = match self.gate {
            Gate::Changes(name) => [field(name, "I"), size()].concat(),
            Gate::Length(name) => [length(name), size()].concat(),
            Gate::Open => [vec![Push::Constant(-1)], size()].concat(),
            Gate::Array(name, kind) => field(name, kind),
            Gate::Grown => Vec::new(),
        };
        pushes.extend(gate);
        let least = Push::Combined("java/lang/Math", "min");
        pushes.extend(match point.many {
            Many::One => vec![Push::Constant(1)],
            Many::Some => vec![Push::Constant(0)],
            Many::IfAny => [size(), vec![Push::Constant(1), least]].concat(),
            Many::All => size(),
            Many::AtMost(most) => [size(), vec![Push::Number(most), least]].concat(),
            Many::Range(from, to) => vec![Push::Number(to), Push::Number(from), Push::Less],
            Many::Difference(slot) => {
                pushes.push(Push::Long(slot));
                let hook = match self.gate {
                    Gate::Grown => BY_LONG,
                    _ => BY_DIFFERENCE,
                };
                return Entry { pushes, hook };
            }
            Many::Longer(slot, name) => {
                let mut pushes = [collection.clone(), field(name, ELEMENTS)].concat();
                pushes.push(Push::Reference(slot));
                return Entry {
                    pushes,
                    hook: BY_ARRAYS,
                };
            }
        });
        pushes.push(Push::Constant(point.kind.code()));
        let hook = match self.gate {
            Gate::Array(..) => BY_ARRAY,
            Gate::Grown => BY_NUMBER,
            _ => BY_CHANGES,
        };
        Entry { pushes, hook }
    }

    fn collection(&self) -> Vec<Push<'static>> {
        match self.collection {
            Collection::This => vec![Push::Reference(0)],
            Collection::Argument(slot) => vec![Push::Reference(slot)],
            Collection::Field(class, name, descriptor) => {
                vec![Push::Reference(0), Push::Field(class, name, descriptor)]
            }
            Collection::ArgumentField(slot, class, name, descriptor) => {
                vec![Push::Reference(slot), Push::Field(class, name, descriptor)]
            }
        }
    }

    /// Returns the fields and methods of JDK classes that the calls of the hooks use.
    pub(crate) fn needed(&self) -> Vec<Needed> {
        let mut needed = Vec::new();
        let entered = self.points.iter().map(|point| self.call(point));
        let within = self.steps.iter().map(|steps| self.hook_entry(steps));
        for push in entered.chain(within).flat_map(|entry| entry.pushes) {
            let one = match push {
                Push::Field(class, name, descriptor) => Needed::Field([class, name, descriptor]),
                Push::Call(class, name, descriptor) | Push::Own(class, name, descriptor) => {
                    Needed::Method([class, name, descriptor])
                }
                _ => continue,
            };
            if !needed.contains(&one) {
                needed.push(one);
            }
        }
        needed
    }
}

/// True if a method has the name in `meant`. If `meant` also contains the beginning of a descriptor, the method's
/// descriptor must begin with the same text.
fn is_named((name, descriptor): &(String, String), meant: &str) -> bool {
    match meant.find('(') {
        Some(at) => *name == meant[..at] && descriptor.starts_with(&meant[at..]),
        None => name == meant,
    }
}

const ELEMENTS: &str = "[Ljava/lang/Object;";
const ATOMIC: &str = "java/util/concurrent/atomic/AtomicInteger";
const ATOMIC_TYPE: &str = "Ljava/util/concurrent/atomic/AtomicInteger;";
