//! Splits a deep size by field. A breadth-first walk counts each object for the field path by which it is reached
//! first.

use rustc_hash::FxHashMap;

use crate::answers::deep::Deep;
use crate::answers::objects::reference::Via;
use crate::ids::{ClassIndex, ObjectIndex};
use crate::sizes::totals::Total;

/// Number of objects whose records are read together.
const CHUNK: usize = 1 << 16;

/// A line of the tree: the objects that are reached by the same fields. See [`Deep::tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeepLine {
    /// Index of the parent line. `None` for the first line, which has the requested objects.
    pub above: Option<u32>,
    /// Depth of this line: the number of fields and elements on the path from the requested objects to it.
    pub depth: u32,
    /// The reference from the objects of the parent line to the objects of this line. All elements of arrays form one
    /// line.
    pub via: Option<Via>,
    /// The class of all objects of this line. `None` if the objects have several classes, or are class objects.
    pub class: Option<ClassIndex>,
    /// The objects of this line.
    pub own: Total,
    /// The objects of this line and of all its descendant lines, including objects beyond the depth limit.
    pub all: Total,
}

impl Deep<'_> {
    /// Splits a deep size by field path. Paths have at most `depth` references. An object farther away is counted in
    /// the last line of the path that leads to it. The sum over all lines is the result of [`Deep::of_set`]. Each line
    /// comes after its parent line.
    ///
    /// Cost: as [`Deep::of_set`], plus, for each level, a walk over each piece of the file (about a megabyte) that
    /// holds an object of the level.
    pub fn tree(&mut self, objects: &[ObjectIndex], depth: u32) -> Vec<DeepLine> {
        let snapshot = self.snapshot;
        let mut lines = vec![DeepLine {
            above: None,
            depth: 0,
            via: None,
            class: None,
            own: Total::default(),
            all: Total::default(),
        }];
        let mut starts = Vec::new();
        objects.iter().for_each(|o| self.reach(o.0, &mut starts));
        let mut level: Vec<(u32, u32)> = starts.into_iter().map(|o| (o, 0)).collect();
        let mut places: FxHashMap<(u32, Via), u32> = FxHashMap::default();
        for _ in 0..depth {
            let mut next: Vec<(u32, u32)> = Vec::new();
            for chunk in level.chunks(CHUNK) {
                let objects: Vec<ObjectIndex> = chunk.iter().map(|e| ObjectIndex(e.0)).collect();
                let raws = snapshot.records_of(&objects);
                for (&(object, line), raw) in chunk.iter().zip(raws) {
                    self.add(&mut lines[line as usize], object);
                    self.each_reference(object, raw.as_ref(), |deep, target, way| {
                        if !deep.mark_target(target) {
                            return;
                        }
                        let via = snapshot.via(ObjectIndex(object), way).0.merged();
                        let place = places.entry((line, via)).or_insert_with(|| {
                            let above = lines[line as usize];
                            lines.push(DeepLine {
                                above: Some(line),
                                depth: above.depth + 1,
                                via: Some(via),
                                class: None,
                                own: Total::default(),
                                all: Total::default(),
                            });
                            lines.len() as u32 - 1
                        });
                        next.push((target, *place));
                    });
                }
            }
            level = next;
        }
        // Deeper objects have no line of their own, so the fields that lead to them are not needed, and their records
        // are not read.
        let mut deeper: Vec<Total> = vec![Total::default(); lines.len()];
        let mut first = true;
        while !level.is_empty() {
            let mut next: Vec<(u32, u32)> = Vec::new();
            let mut found = Vec::new();
            for &(object, line) in &level {
                if first {
                    self.add(&mut lines[line as usize], object);
                } else {
                    deeper[line as usize] += self.one(object);
                }
                self.step(object, &mut found);
                next.extend(found.drain(..).map(|target| (target, line)));
            }
            first = false;
            level = next;
        }
        self.clear_seen();
        for (line, deeper) in lines.iter_mut().zip(deeper) {
            line.all = line.own;
            line.all += deeper;
        }
        for at in (1..lines.len()).rev() {
            if let Some(above) = lines[at].above {
                let all = lines[at].all;
                lines[above as usize].all += all;
            }
        }
        lines
    }

    fn one(&self, object: u32) -> Total {
        Total {
            objects: 1,
            bytes: self.snapshot.shallow_bytes(ObjectIndex(object)),
        }
    }

    /// Adds an object to its line.
    fn add(&self, line: &mut DeepLine, object: u32) {
        let class = self.snapshot.class_of(ObjectIndex(object));
        line.class = match line.own.objects {
            0 => class,
            _ => line.class.filter(|c| Some(*c) == class),
        };
        line.own += self.one(object);
    }
}
