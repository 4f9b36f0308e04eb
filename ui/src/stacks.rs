//! The stacks of a line, or of all, as the tree of a flame graph.

use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::candidates::{Bounds, Live};
use crate::runs::Key;
use crate::text::{MOST_LETTERS, Names};
use crate::traces::{Traces, Unanswered};
use crate::view::{Life, Question};

/// Frames of the tree.
const MOST_NODES: usize = 50_000;
/// Frames of one stack.
const DEEPEST: usize = 512;

/// Which stacks.
#[derive(Clone, Debug)]
pub(crate) enum Of {
    /// All that allocated.
    All,
    /// What allocated instances of this class.
    Class(String),
    /// Those of these sites.
    Sites(Vec<(Key, i64)>),
}

/// A tree in preorder, without its root.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tree {
    /// Names of frames, then of classes.
    names: Vec<String>,
    first_class: usize,
    depth: Vec<u32>,
    name: Vec<u32>,
    /// Bytes of a node itself, without what is below: more alive at the window's end than at its begin.
    grown: Vec<i64>,
    /// Less.
    shrunk: Vec<i64>,
    /// Alive at its end.
    after: Vec<i64>,
    /// Sites that found no room.
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

    /// A name's number. Its first part: whether it is a class.
    fn name(&mut self, name: (bool, String)) -> u32 {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The node of a path from the outermost frame to the class; none if it has no room.
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
        // Frames first: a name's place among its kind.
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

/// Answers which stacks allocated what is alive.
pub(crate) fn stacks(traces: &Traces, question: &Question, of: &Of) -> Result<Tree, Unanswered> {
    let lives = Life::of(traces, &question.runs);
    let mut builder = Builder::new();
    for life in &lives {
        let Some(trace) = traces.get(life.key.trace) else {
            continue;
        };
        let from = question.from.unwrap_or(life.first);
        let to = question.to.unwrap_or(life.last);
        trace.ask(
            |c| match Bounds::of(c, life.key.run, life.uptime(from), life.uptime(to))? {
                Some(bounds) => Ok(add(c, life.key, bounds, of, &mut builder)?),
                None => Ok(()),
            },
        )?;
    }
    Ok(builder.tree())
}

fn add(
    c: &Connection,
    key: Key,
    bounds: Bounds,
    of: &Of,
    builder: &mut Builder,
) -> rusqlite::Result<()> {
    let mut live = Live::new(c)?;
    let mut names = Names::new(c)?;
    // Stacks share their outer parts.
    let mut known: FxHashMap<i64, (u32, Option<i64>)> = FxHashMap::default();
    for (site, class, stack) in sites(c, key, of)? {
        let before = live.at(bounds.run, site, bounds.from)?.bytes;
        let after = live.at(bounds.run, site, bounds.to)?.bytes;
        if before == 0 && after == 0 {
            continue;
        }
        let mut path = vec![builder.name((true, names.class(class)?))];
        let mut next = stack;
        while let Some(id) = next
            && path.len() <= DEEPEST
        {
            let frame = match known.get(&id) {
                Some(frame) => *frame,
                None => {
                    let Some((frame, parent)) = names.frame(id)? else {
                        break;
                    };
                    let frame = (builder.name((false, frame)), parent);
                    known.insert(id, frame);
                    frame
                }
            };
            path.push(frame.0);
            next = frame.1;
        }
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

/// Row, class and stack.
type Site = (i64, i64, Option<i64>);

fn sites(c: &Connection, key: Key, of: &Of) -> rusqlite::Result<Vec<Site>> {
    const MOST: i64 = 100_000;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    match of {
        Of::All => {
            let mut all = c.prepare_cached("SELECT id, class, stack FROM site LIMIT ?1")?;
            all.query_map([MOST], read)?.collect()
        }
        Of::Class(name) => {
            let mut of_class = c.prepare_cached(&format!(
                "SELECT s.id, s.class, s.stack FROM class c JOIN site s ON s.class = c.id \
                 WHERE substr(c.name, 1, {MOST_LETTERS}) = ?1 LIMIT ?2"
            ))?;
            of_class
                .query_map(rusqlite::params![name, MOST], read)?
                .collect()
        }
        Of::Sites(sites) => {
            let mut one = c.prepare_cached("SELECT id, class, stack FROM site WHERE id = ?1")?;
            let mut found = Vec::new();
            for (_, site) in sites.iter().filter(|(of, _)| *of == key) {
                for row in one.query_map([site], read)? {
                    found.push(row?);
                }
            }
            Ok(found)
        }
    }
}
