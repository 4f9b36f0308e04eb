//! Class histograms: all objects, reachable objects, and retained sizes.

use std::path::Path;

use rayon::prelude::*;

use crate::bytes::array::Store;
use crate::bytes::source::Source;
use crate::dominators::tree::Node;
use crate::error::{Result, Warning};
use crate::graph::build;
use crate::graph::cut_arrays;
use crate::graph::plan::{Context, Plan};
use crate::ids::NONE;
use crate::options::Options;
use crate::progress::Progress;
use crate::records::classes::Classes;
use crate::records::outline::Outline;
use crate::records::record::{self, Header};
use crate::sizes::layout::{Layout, Sizes};
use crate::sizes::shape::{IN_TABLES, Shape};
use crate::sizes::totals::{ClassTotal, Total, totals};
use crate::snapshot::{Dump, Snapshot};

/// A histogram of a dump, without its heap graph.
#[derive(Debug)]
pub struct Histogram {
    pub(crate) dump: Dump,
    pub(crate) totals: Vec<ClassTotal>,
}

impl Histogram {
    /// Reads a dump in one pass, and counts the objects and shallow bytes of each class.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open(path: &Path, options: &Options, progress: &dyn Progress) -> Result<Self> {
        Self::from_source(Source::open_nth(path, options.dump)?, options, progress)
    }

    /// Reads a dump from a source that is already open. See [`Histogram::open`].
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn from_source(source: Source, options: &Options, progress: &dyn Progress) -> Result<Self> {
        let store = Store::new(options.max_memory);
        let header = record::header(&source)?;
        let outline = Outline::with_heap(&source, &header)?;
        let mut plan = Plan::new(&source, &header, &outline);
        let context = Context::new(&source, &header, &outline, options, progress, &store);
        let scanned = build::measure(&context, &mut plan)?;
        let stats = scanned.stats;
        let sizes = Sizes::infer(
            &plan.classes,
            &stats,
            header.id_size,
            &outline.live_objects(),
        );
        let totals = totals(&plan.classes, &sizes, &stats);
        let mut dump = Dump {
            source,
            header,
            outline,
            classes: plan.classes,
            sizes,
            warnings: Vec::new(),
        };
        let cut = cut_arrays::warnings(&scanned.cut_arrays, &dump.classes, &dump.sizes, &[]);
        dump.gather_warnings(&stats, scanned.warnings.into_iter().chain(cut));
        dump.source.check()?;
        dump.rename(options);
        Ok(Self { dump, totals })
    }

    /// Returns the file's header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.dump.header
    }

    /// Returns the dump's bytes, with their path and size on disk.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.dump.source
    }

    /// Returns the warnings about damaged or missing parts of the dump, in the order of the file.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.dump.warnings
    }

    /// Returns the inferred object layout of the JVM.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.dump.sizes.layout
    }

    /// Returns the dump's classes.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.dump.classes
    }

    /// Returns the lines of the histogram: one for each class, in the order of [`Histogram::classes`].
    #[must_use]
    pub fn totals(&self) -> &[ClassTotal] {
        &self.totals
    }
}

impl Snapshot {
    /// Returns the number and bytes of each class's objects, reachable or not. The reachable and retained figures of
    /// the result are 0. To get them, call [`Snapshot::histogram`].
    ///
    /// Cost: copies one [`ClassTotal`] for each class.
    #[must_use]
    pub fn totals(&self) -> Vec<ClassTotal> {
        self.totals.clone()
    }

    /// Returns the histogram: all objects, reachable objects, and the bytes that each class retains.
    ///
    /// A class's retained bytes are the sum of the retained sizes of its top ancestors. A top ancestor is an instance
    /// that no other instance of the class dominates, directly or indirectly. (Eclipse MAT computes this in the same
    /// way, and calls it the minimum retained size.) So no byte is counted twice, even if instances hold each other in
    /// a list or a tree. Removing all instances at once can free more than this sum: an object that only several
    /// instances together hold is retained by none of these instances. Class objects count as instances of
    /// `java.lang.Class`, not of the class that they represent. The sums of different classes can overlap.
    ///
    /// Cost: one pass over the dominator tree on the first call. Later calls copy the result of the first call.
    #[must_use]
    pub fn histogram(&self) -> Vec<ClassTotal> {
        let known = self.derived.histogram.get_or_init(|| self.summed());
        known.clone()
    }

    fn summed(&self) -> Vec<ClassTotal> {
        let mut totals = self.totals.clone();
        let class_class = self.class_class().map_or(NONE, |c| c.0);
        let class_of = |shape: u32| match self.shapes.decode(shape) {
            Shape::Instance(class)
            | Shape::Flattened(class)
            | Shape::Array(class, _)
            | Shape::ValueArray(class, _) => class.0,
            Shape::ClassObject(_) => class_class,
        };
        let short: Vec<u32> = (0..self.shapes.first_long().min(IN_TABLES))
            .map(class_of)
            .collect();
        let class_of = |shape: u32| match short.get(shape as usize) {
            Some(&class) => class,
            None => class_of(shape),
        };
        let nodes = self.tree().node_count();
        let piece = nodes
            .div_ceil(rayon::current_num_threads() * 4)
            .max(1 << 14);
        let parts: Vec<Vec<ClassTotal>> = (0..nodes.div_ceil(piece))
            .into_par_iter()
            .map(|i| {
                let range = i * piece..((i + 1) * piece).min(nodes);
                self.retained_in(range, totals.len(), &class_of)
            })
            .collect();
        for part in parts {
            for (total, part) in totals.iter_mut().zip(part) {
                total.reachable += part.reachable;
                total.retained_bytes += part.retained_bytes;
            }
        }
        totals
    }

    /// Returns the reachable and retained figures of a part of the dominator tree. This part has the nodes in `range`,
    /// and the objects without references that they immediately dominate. The nodes are numbered in preorder.
    fn retained_in(
        &self,
        range: std::ops::Range<usize>,
        classes: usize,
        class_of: &impl Fn(u32) -> u32,
    ) -> Vec<ClassTotal> {
        const AHEAD: usize = 24;
        let (tree, view, shapes) = (self.tree(), self.tree().view(), self.shapes_view());
        let (first, end) = (range.start as u32, range.end as u32);
        let mut totals = vec![ClassTotal::default(); classes];
        // A top ancestor is an instance that no other instance of its class dominates. For each class, `open` stores
        // where the subtree of the last top ancestor ends, or 0 if no top ancestor was found yet. Instances of the
        // class in this subtree are not top ancestors.
        let mut open = vec![0_u32; classes];
        let mut above = Node(first);
        while above != Node::ROOT {
            above = tree.parent(above);
            if let Some(object) = tree.object(above)
                && let Some(open) = open.get_mut(class_of(self.shape(object)) as usize)
            {
                *open = (*open).max(tree.end(above).0);
            }
        }
        let objects = &view.object[range];
        // In the tree's list of objects without references, the objects that these nodes immediately dominate are one
        // contiguous range.
        let (base, held) = view.leaves_of(first..end);
        let mut next = 0;
        for (node, (at, &object)) in (first..end).zip(objects.iter().enumerate()) {
            if let Some(&soon) = objects.get(at + AHEAD) {
                shapes.fetch_inner(soon);
            }
            if object != NONE {
                let shape = shapes.of(object);
                let class = class_of(shape) as usize;
                if let (Some(total), Some(open)) = (totals.get_mut(class), open.get_mut(class)) {
                    let bytes = self.size_of_shape(shape);
                    total.reachable += Total { objects: 1, bytes };
                    if node >= *open {
                        total.retained_bytes += view.retained_bytes(node);
                        *open = view.end[node as usize];
                    }
                }
            }
            let own = next..view.leaves_before(node + 1) - base;
            next = own.end;
            for at in own {
                if let Some(&soon) = held.get(at + AHEAD) {
                    shapes.fetch_leaf(soon);
                }
                let leaf = held[at];
                let shape = shapes.of_leaf(leaf);
                let class = class_of(shape) as usize;
                if let (Some(total), Some(&open)) = (totals.get_mut(class), open.get(class)) {
                    let bytes = self.size_of_shape(shape);
                    total.reachable += Total { objects: 1, bytes };
                    // An object without references has no subtree, so it retains only itself.
                    if node >= open {
                        total.retained_bytes += bytes;
                    }
                }
            }
        }
        totals
    }
}
