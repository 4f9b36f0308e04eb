//! Builds the tree of a flame graph from the stacks of one line or of all lines.

use std::collections::hash_map::Entry;

use heapdiff_trace::read::Site;
use heapdiff_trace::{Trace, TraceError, Window};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::amount::signed;
use crate::by::Places;
use crate::key::Key;
use crate::text::{cut, frame_of};
use crate::traces::{Traces, Unanswered};
use crate::view::{Life, Question};

/// Maximum number of nodes in the tree.
const MOST_NODES: usize = 50_000;
/// Maximum number of frames of one stack.
const DEEPEST: usize = 512;

/// The selection of stacks.
#[derive(Clone, Debug)]
pub(crate) enum Of {
    /// All stacks of the runs.
    All,
    /// The stacks that allocated instances of this class.
    Class(String),
    /// The stacks that allocated instances of this class at this frame.
    Place(String, String),
    /// The stacks of these sites.
    Sites(Vec<(Key, i64)>),
}

/// A tree in preorder, without its root.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tree {
    /// Names of the nodes. Frames come first, and classes begin at `first_class`.
    names: Vec<String>,
    first_class: usize,
    depth: Vec<u32>,
    name: Vec<u32>,
    /// Growth of the live bytes of each node in the window, without its children.
    grown: Vec<i64>,
    /// Decrease of the live bytes of each node in the window, without its children.
    shrunk: Vec<i64>,
    /// Live bytes of each node at the end of the window, without its children.
    after: Vec<i64>,
    /// The number of sites that were left out because the tree had reached its maximum size.
    left_out: u64,
}

#[derive(Debug, Default)]
struct Node {
    name: u32,
    depth: u32,
    children: Vec<u32>,
    grown: i64,
    shrunk: i64,
    after: i64,
}

#[derive(Debug, Default)]
struct Builder {
    nodes: Vec<Node>,
    found: FxHashMap<(u32, u32), u32>,
    names: Vec<(bool, String)>,
    numbers: FxHashMap<(bool, String), u32>,
    left_out: u64,
}

impl Builder {
    fn new() -> Self {
        Self {
            nodes: vec![Node::default()],
            ..Self::default()
        }
    }

    /// Returns the index of a name. Adds the name if it is new. `name` is a pair: true for a class or false for a
    /// frame, and the text.
    fn name(&mut self, name: (bool, String)) -> u32 {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// Returns the node at the end of a path, which leads from the outermost frame to the class. Returns `None` if the
    /// tree is full.
    fn node(&mut self, path: impl Iterator<Item = u32>) -> Option<&mut Node> {
        let mut at = 0_u32;
        for name in path {
            at = match self.found.get(&(at, name)) {
                Some(&child) => child,
                None if self.nodes.len() > MOST_NODES => return None,
                None => {
                    let child = u32::try_from(self.nodes.len()).ok()?;
                    let parent = self.nodes.get_mut(at as usize)?;
                    parent.children.push(child);
                    let depth = parent.depth + 1;
                    self.nodes.push(Node {
                        name,
                        depth,
                        ..Node::default()
                    });
                    self.found.insert((at, name), child);
                    child
                }
            };
        }
        self.nodes.get_mut(at as usize)
    }

    fn tree(self) -> Tree {
        // In the list of names, all frames come before all classes. Both keep their order.
        let first_class = self.names.iter().filter(|(class, _)| !class).count();
        let (mut frames, mut classes) = (0, first_class);
        let places: Vec<u32> = self
            .names
            .iter()
            .map(|(class, _)| {
                let next = if *class { &mut classes } else { &mut frames };
                *next += 1;
                u32::try_from(*next - 1).unwrap_or(u32::MAX)
            })
            .collect();
        let mut names: Vec<_> = self.names.into_iter().zip(&places).collect();
        names.sort_by_key(|(_, place)| **place);
        let mut tree = Tree {
            names: names.into_iter().map(|((_, name), _)| name).collect(),
            first_class,
            left_out: self.left_out,
            ..Tree::default()
        };
        let mut work = vec![0_u32];
        while let Some(at) = work.pop() {
            let Some(node) = self.nodes.get(at as usize) else {
                continue;
            };
            let mut children = node.children.clone();
            let name_of = |n: u32| {
                let name = self
                    .nodes
                    .get(n as usize)
                    .and_then(|n| places.get(n.name as usize));
                name.and_then(|&place| tree.names.get(place as usize))
            };
            children.sort_by(|&a, &b| name_of(b).cmp(&name_of(a)));
            work.extend(children);
            if at == 0 {
                continue;
            }
            tree.depth.push(node.depth);
            tree.name
                .push(places.get(node.name as usize).copied().unwrap_or(0));
            tree.grown.push(node.grown);
            tree.shrunk.push(node.shrunk);
            tree.after.push(node.after);
        }
        tree
    }
}

/// Returns the allocation stacks of live objects as a tree.
pub(crate) fn stacks(traces: &Traces, question: &Question, of: &Of) -> Result<Tree, Unanswered> {
    let lives = Life::read_all(traces, &question.runs);
    let mut builder = Builder::new();
    for life in &lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        let window = life.window(question.from, question.to.unwrap_or(life.last));
        trace.ask(|open| {
            let ends = Ends::read(&open.trace, life, window)?;
            Ok(add(&open.trace, ends, of, &mut builder)?)
        })?;
    }
    Ok(builder.tree())
}

/// The row ids of two ticks of a run: the last tick that ended before a window, and the last tick that ended by the end
/// of the window.
#[derive(Clone, Copy, Debug)]
struct Ends {
    key: Key,
    before: Option<i64>,
    last: Option<i64>,
}

impl Ends {
    fn read(trace: &Trace, life: &Life, window: Window) -> Result<Self, TraceError> {
        let run = life.key.run;
        Ok(Self {
            key: life.key,
            before: match window.from_ms.checked_sub(1) {
                Some(ms) => trace.tick_at(run, ms)?,
                None => None,
            },
            last: trace.tick_at(run, window.to_ms)?,
        })
    }

    fn bytes(&self, trace: &Trace, site: i64, tick: Option<i64>) -> Result<i64, TraceError> {
        let Some(tick) = tick else { return Ok(0) };
        let live = trace.live_at(self.key.run, site, tick)?;
        Ok(signed(live.amount.bytes))
    }
}

fn add(trace: &Trace, ends: Ends, of: &Of, builder: &mut Builder) -> Result<(), TraceError> {
    // A cache by stack id: the innermost frames of the stack, and the id of the stack of its caller. Many stacks share
    // their outer frames.
    let mut known: FxHashMap<i64, (Vec<u32>, Option<i64>)> = FxHashMap::default();
    let places = match of {
        Of::Place(..) => Some(Places::read(trace)?),
        Of::All | Of::Class(_) | Of::Sites(_) => None,
    };
    let wanted = |site: &&Site| of.is(ends.key, site, places.as_ref());
    for site in trace.sites()?.iter().filter(wanted) {
        let before = ends.bytes(trace, site.id, ends.before)?;
        let after = ends.bytes(trace, site.id, ends.last)?;
        if before == 0 && after == 0 {
            continue;
        }
        let mut path = vec![builder.name((true, cut(&site.class).to_owned()))];
        let mut next = site.stack;
        while let Some(id) = next
            && path.len() <= DEEPEST
        {
            let (frames, caller) = match known.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let Some((frames, caller)) = trace.frames(id)? else {
                        break;
                    };
                    let texts = frames.iter().map(frame_of);
                    let names = texts.map(|frame| builder.name((false, frame)));
                    place.insert((names.collect(), caller))
                }
            };
            path.extend_from_slice(frames);
            next = *caller;
        }
        path.truncate(DEEPEST);
        match builder.node(path.into_iter().rev()) {
            Some(node) => {
                let change = after.saturating_sub(before);
                node.grown = node.grown.saturating_add(change.max(0));
                node.shrunk = node.shrunk.saturating_add(change.min(0).saturating_neg());
                node.after = node.after.saturating_add(after);
            }
            None => builder.left_out += 1,
        }
    }
    Ok(())
}

impl Of {
    fn is(&self, key: Key, site: &Site, places: Option<&Places>) -> bool {
        match self {
            Self::All => true,
            Self::Class(name) => cut(&site.class) == name,
            Self::Place(name, place) => {
                let found = || places.and_then(|p| p.of_site(site));
                cut(&site.class) == name && found().as_ref() == Some(place)
            }
            Self::Sites(sites) => sites.contains(&(key, site.id)),
        }
    }
}
