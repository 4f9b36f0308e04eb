//! Compares wasted memory across dumps. `hprof` finds the waste. This module gives it names that are the same in every
//! dump of a program.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use heapdiff_model::waste::{WasteExample, WasteGrowth, WasteHolderRow, WasteRow};
use hprof::answers::{WasteHolder, WasteKind, WasteOptions, WasteTotal};
use hprof::{ClassIndex, Progress, Snapshot};

use crate::names::{hold_label, is_passive_container, name_of, stable};
use crate::samples::AgentObjects;

/// Maximum number of characters of a string to show.
const CHARACTERS: usize = 80;

/// The waste found in a dump. It stays valid after the dump is closed.
#[derive(Clone, Debug)]
pub struct WasteSummary {
    kinds: Vec<KindSummary>,
}

#[derive(Clone, Debug)]
struct KindSummary {
    kind: WasteKind,
    total: WasteTotal,
    groups: u64,
    examples: Vec<WasteExample>,
    /// Number of objects, and possible savings in bytes, by the label of the holder.
    holders: BTreeMap<String, (u64, u64)>,
}

/// The waste of several dumps, compared.
#[derive(Clone, Debug)]
pub struct ComparedWaste {
    /// The waste.
    pub waste: WasteGrowth,
    /// For each kind in the order of `waste.kinds`, the number of holders that are not listed.
    pub more_holders: Vec<u64>,
}

impl WasteSummary {
    /// Finds the waste of a dump, and stores at most `examples` examples of each kind. The agent's objects are left
    /// out. The holders are fields of classes other than JDK classes and collection libraries.
    ///
    /// Cost: that of [`Snapshot::waste`].
    ///
    /// # Errors
    /// Returns an error if memory runs out.
    pub fn new(
        snapshot: &Snapshot,
        agent_objects: &AgentObjects,
        examples: usize,
        progress: &dyn Progress,
    ) -> hprof::Result<Self> {
        let passes = |class: ClassIndex| is_passive_container(snapshot, class);
        let options = WasteOptions {
            groups: examples,
            except: agent_objects.objects(),
            passes: &passes,
        };
        let waste = snapshot.waste(&options, progress)?;
        let kinds = waste.iter().map(|(kind, of)| {
            let mut holders: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for holder in &of.holders {
                let row = holders.entry(label(snapshot, holder)).or_default();
                *row = (row.0 + holder.objects, row.1 + holder.bytes_to_win);
            }
            let objects: Vec<_> = of.largest.iter().map(|g| g.example).collect();
            let texts = if kind.is_duplicate() {
                crate::values::texts(snapshot, &objects, CHARACTERS)
            } else {
                vec![None; objects.len()]
            };
            let rows = of.largest.iter().zip(snapshot.ids(&objects)).zip(texts);
            let examples = rows.map(|((group, id), text)| WasteExample {
                id: id.unwrap_or_default().to_string(),
                class: name_of(snapshot, group.example),
                length: match kind {
                    WasteKind::DuplicateArrays => snapshot.array_length(group.example),
                    _ => None,
                },
                text,
                objects: group.total.objects,
                shallow_bytes: group.total.shallow_bytes,
                bytes_to_win: group.total.bytes_to_win,
            });
            KindSummary {
                kind,
                total: of.total,
                groups: of.groups,
                examples: examples.collect(),
                holders,
            }
        });
        Ok(Self {
            kinds: kinds.collect(),
        })
    }

    /// Compares the waste of several dumps, oldest first, with at most `holders` holders of each kind.
    #[must_use]
    pub fn compared(all: &[Self], holders: usize) -> ComparedWaste {
        let kinds = WasteKind::ALL.into_iter().enumerate();
        let mut rows: Vec<(WasteRow, u64)> = kinds
            .map(|(at, kind)| row(all, at, kind, holders))
            .collect();
        rows.sort_by_key(|(row, _)| Reverse(weight(&row.bytes_to_win)));
        let (kinds, more_holders): (Vec<WasteRow>, Vec<u64>) = rows.into_iter().unzip();
        let sum = |dump: usize| kinds.iter().map(|row| row.bytes_to_win[dump]).sum();
        let bytes_to_win = (0..all.len()).map(sum).collect();
        ComparedWaste {
            waste: WasteGrowth {
                bytes_to_win,
                kinds,
            },
            more_holders,
        }
    }
}

/// Returns the sort key for kinds and holders: the growth first, then the size.
fn weight(figures: &[u64]) -> (i128, u64) {
    let (first, last) = (figures.first(), figures.last());
    let last = last.copied().unwrap_or(0);
    let first = first.copied().filter(|_| figures.len() > 1).unwrap_or(0);
    (i128::from(last) - i128::from(first), last)
}

/// Returns the waste of one kind. Also returns the number of holders that were left out because of the limit.
fn row(all: &[WasteSummary], at: usize, kind: WasteKind, limit: usize) -> (WasteRow, u64) {
    let of: Vec<&KindSummary> = all.iter().map(|summary| &summary.kinds[at]).collect();
    let list = |figure: fn(&KindSummary) -> u64| of.iter().map(|k| figure(k)).collect();
    let mut names: Vec<&String> = of.iter().flat_map(|k| k.holders.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let figures = |name: &String| {
        of.iter()
            .map(|k| k.holders.get(name).copied().unwrap_or_default())
            .collect()
    };
    let mut holders: Vec<WasteHolderRow> = names
        .into_iter()
        .map(|name| {
            let figures: Vec<(u64, u64)> = figures(name);
            WasteHolderRow {
                holder: name.clone(),
                objects: figures.iter().map(|f| f.0).collect(),
                bytes_to_win: figures.iter().map(|f| f.1).collect(),
            }
        })
        .collect();
    holders.sort_by_key(|h| Reverse(weight(&h.bytes_to_win)));
    let more_holders = holders.len().saturating_sub(limit) as u64;
    holders.truncate(limit);
    debug_assert!(of.iter().all(|k| k.kind == kind));
    let row = WasteRow {
        kind: kind.name(),
        objects: list(|k| k.total.objects),
        shallow_bytes: list(|k| k.total.shallow_bytes),
        bytes_to_win: list(|k| k.total.bytes_to_win),
        groups: list(|k| k.groups),
        examples: of.last().map(|k| k.examples.clone()).unwrap_or_default(),
        holders,
    };
    (row, more_holders)
}

/// Returns the name of a holder as reports show it.
fn label(snapshot: &Snapshot, holder: &WasteHolder) -> String {
    use hprof::answers::Hold;
    let Some(class) = holder.class else {
        return "GC roots".to_owned();
    };
    let name = stable(&snapshot.classes()[class].name);
    match holder.hold {
        // The name of a field begins with the class of the holding object, even if a superclass declares the field.
        Hold::Field(owner, place) => {
            let fields = &snapshot.classes()[owner].fields;
            let field = fields.get(usize::from(place)).map_or("?", |f| &f.name);
            format!("{name}.{field}")
        }
        Hold::Element => {
            let element = name.strip_suffix("[]").unwrap_or(&name);
            format!("{element}[*]")
        }
        Hold::Shared => format!("{name} (several paths)"),
        Hold::Local => format!("{name} (local variable)"),
        Hold::Static(..) => hold_label(snapshot, holder.hold, None).0,
        hold => format!("{name} {}", hold_label(snapshot, hold, None).0),
    }
}
