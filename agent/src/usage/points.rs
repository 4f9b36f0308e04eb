//! Where the JDK's collections are used: methods that are entered once for each element that is put or removed, and once for each
//! reading. What calls another of them is not among them, so nothing is counted twice. Where no method is entered once for each element,
//! steps within methods tell: the field with the number of elements is set, or a method has returned.

use heapdiff_bytecode::{Does, Entry, Name, Push, Step};
use heapdiff_sites::usage::Kind;

use super::collections;
use super::hook::{BY_ARRAY, BY_ARRAYS, BY_CHANGES, BY_DIFFERENCE, BY_LONG, BY_NUMBER, BY_SIZES};

/// Where the collection is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Collection {
    /// `this`.
    This,
    /// An argument.
    Argument(u8),
    /// A field of `this`: its class, its name, its type.
    Field(&'static str, &'static str, &'static str),
    /// A field of an argument: its class, its name, its type.
    ArgumentField(u8, &'static str, &'static str, &'static str),
}

/// A number that tells that a collection is large, or was. It never falls, so that one that is watched always is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gate {
    /// How often it was changed: a field of the class.
    Changes(&'static str),
    /// The length of an array in a field that is never null.
    Length(&'static str),
    /// It is always looked for.
    Open,
    /// The length of an array in a field of this type, which may be null. Its size is not known then.
    Array(&'static str, &'static str),
    /// There is none, nor is the size known without going through all: it is always looked for, and is large when that many more
    /// elements came than went.
    Grown,
}

/// How many elements there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    Field(&'static str),
    /// A field that has the element already which is put.
    After(&'static str),
    /// An `AtomicInteger` in a field.
    Atomic(&'static str),
    /// What its method `size` says.
    Asked,
    /// The length of an array in a field that is never null.
    Length(&'static str),
    /// Not known; the gate is [`Gate::Grown`].
    Unknown,
}

/// How many elements a call concerns.
#[derive(Clone, Copy, Debug)]
pub(super) enum Many {
    One,
    /// One, if there is any.
    IfAny,
    /// It is not known here; the size tells.
    Some,
    /// As many as there are.
    All,
    /// As many as there are, and no more than a local variable says.
    AtMost(u8),
    /// From one number to another, both in local variables.
    Range(u8, u8),
    /// A `long` in a local variable, negative where they are removed.
    Difference(u8),
    /// As much longer as an array in a local variable is than the one in a field.
    Longer(u8, &'static str),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    kind: Kind,
    many: Many,
    /// Names of methods, some with the start of their descriptor; behind a bar one that is meant in their place where it is
    /// there.
    methods: &'static [&'static str],
}

/// Steps within methods that tell what came or went.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Steps {
    /// A field of the collection with the number of its elements is set, in whatever method.
    Size(&'static str),
    /// A method has returned to one of these, or to any if there are none.
    After {
        within: &'static [&'static str],
        class: &'static str,
        name: &'static str,
        kind: Kind,
        many: Returned,
    },
}

/// How many elements a call concerns that has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Returned {
    One,
    /// One if it returned true, else none.
    IfTrue,
}

/// A class with methods that are entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) class: &'static str,
    /// The class of the collection.
    pub(super) of: &'static str,
    pub(super) collection: Collection,
    pub(super) gate: Gate,
    pub(super) size: Size,
    pub(super) points: &'static [Point],
    pub(crate) steps: &'static [Steps],
}

/// A collection's own class, of which nothing is watched yet.
pub(super) const fn own(class: &'static str) -> Watched {
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

/// A class by its name.
pub(crate) fn of(class: &str) -> Option<&'static Watched> {
    collections::ALL
        .iter()
        .find(|watched| watched.class == class)
}

/// A field or a method without arguments that must be there: the class that is asked, its name, its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    Field([&'static str; 3]),
    Method([&'static str; 3]),
}

impl Watched {
    /// What is called where one of its methods is entered, if that counts. `all` are the methods that the class has.
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

    /// What is called at a step, if that counts; and which of its steps this is.
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
        Some((at, self.call_at(&self.steps[at])))
    }

    fn call_at(&self, steps: &Steps) -> Entry<'static> {
        match *steps {
            Steps::Size(name) => {
                // The collection and its new size become these, the collection, its size so far, and the gate.
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

    /// What its calls name besides the hook.
    pub(crate) fn needed(&self) -> Vec<Needed> {
        let mut needed = Vec::new();
        let entered = self.points.iter().map(|point| self.call(point));
        let within = self.steps.iter().map(|steps| self.call_at(steps));
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

/// Whether a method has this name, and a descriptor that begins so.
fn is_named((name, descriptor): &(String, String), meant: &str) -> bool {
    match meant.find('(') {
        Some(at) => *name == meant[..at] && descriptor.starts_with(&meant[at..]),
        None => name == meant,
    }
}

const ELEMENTS: &str = "[Ljava/lang/Object;";
const ATOMIC: &str = "java/util/concurrent/atomic/AtomicInteger";
const ATOMIC_TYPE: &str = "Ljava/util/concurrent/atomic/AtomicInteger;";
