//! Analysis of a single dump: the holders of most of its heap.
//!
//! One dump shows no growth, so nothing is called a leak. The report names the objects that retain much memory and
//! their holders, in the same words as a report on a comparison.

mod classes;
mod died;
mod threads;

use std::cell::Cell;

use heapdiff_model::diff::Suspect;
use heapdiff_model::heap::{HeapReport, HeapWaste};
use hprof::{Progress, Snapshot};

use crate::allocated::{Allocated, Content};
use crate::comparable;
use crate::compare::{Filter, find_with_containers, judge_candidates};
use crate::evidence::bounds;
use crate::evidence::context::{Last, SuspectContext};
use crate::evidence::detect;
use crate::growth::{Aligned, Candidate};
use crate::joined;
use crate::known::add_known_leaks;
use crate::next_step;
use crate::pending::add_work;
use crate::samples::AgentObjects;
use crate::summary::Summary;
use crate::suspect::{self, thread_local_field};
use crate::through::through;
use crate::unreachable::explain_unreachable;
use crate::waste::WasteSummary;

/// Minimum size of a suspect, as a part of the reachable bytes: 1/50.
const LEAST_PART: u64 = 50;
/// Minimum size of a suspect in bytes, however small the heap is.
const LEAST: u64 = 16 << 10;

/// Options for the analysis of one dump.
#[derive(Clone, Copy, Debug)]
pub struct HeapOptions {
    /// True if the analysis also looks for wasted memory. For this, it reads the contents of all objects.
    pub waste: bool,
}

/// The report of one dump, with additional results.
#[derive(Debug)]
pub struct OneDump {
    /// The report.
    pub report: HeapReport,
    /// True if there are more suspects than were requested.
    pub more_suspects: bool,
    /// True if the filter left out some suspects because of their classes.
    pub left_out: bool,
    /// All stacks with samples; `None` if the dump has no samples.
    pub allocated: Option<Allocated>,
}

impl OneDump {
    /// Analyzes a dump. `summary` is the summary of the same dump.
    ///
    /// Cost: visits the trie of the summary, which has a few thousand nodes. Each node represents all objects of one
    /// class that one reference holds. For each suspect, at most some ten thousand objects are read from the file.
    /// Waste costs as much as [`Snapshot::waste`].
    ///
    /// # Errors
    /// Returns an error if memory runs out.
    pub fn analyze(
        summary: &Summary,
        snapshot: &Snapshot,
        filter: &Filter<'_>,
        options: HeapOptions,
        progress: &dyn Progress,
    ) -> hprof::Result<Self> {
        let least = (summary.info.reachable_bytes / LEAST_PART).max(LEAST);
        let summaries = std::slice::from_ref(summary);
        let found = suspects(summaries, snapshot, filter, least);
        let own = AgentObjects::find(snapshot);
        let threads = threads::of(snapshot, &own);
        let waste = if options.waste {
            waste(&WasteSummary::new(snapshot, &own, 1, progress)?)
        } else {
            Vec::new()
        };
        let report = HeapReport {
            schema: HeapReport::SCHEMA.into(),
            snapshot: summary.info.clone(),
            warnings: comparable::incomplete(&summary.info),
            least_bytes: least,
            explained_bytes: found.explained_bytes,
            died: died::of(&threads),
            suspects: found.suspects,
            threads: threads::largest_threads(snapshot, &threads, least),
            waste,
            classes: classes::of(summary, filter),
            unreachable: explain_unreachable(snapshot, progress)?,
            recordings: Vec::new(),
        };
        Ok(Self {
            report,
            more_suspects: found.more,
            left_out: found.left_out,
            allocated: Allocated::between(summaries, &found.contents),
        })
    }
}

/// Suspects with their content.
#[derive(Default)]
struct Found {
    suspects: Vec<Suspect>,
    contents: Vec<Content>,
    /// Number of reachable bytes that the suspects retain.
    explained_bytes: u64,
    /// True if there are more suspects than the filter's maximum number.
    more: bool,
    /// True if the filter left out some suspects because of their classes.
    left_out: bool,
}

/// Returns the suspects that the filter admits.
fn suspects(summaries: &[Summary], snapshot: &Snapshot, filter: &Filter<'_>, least: u64) -> Found {
    let Some(mut aligned) = Aligned::new(summaries) else {
        return Found::default();
    };
    let last = Last::Dump(snapshot);
    // Search for one suspect more than requested. If it exists, the result says that there are more.
    let count = filter.suspects.saturating_add(1);
    let candidates = find_with_containers(last, &mut aligned, count, |aligned| {
        aligned.largest(snapshot, least)
    });
    let left_out = Cell::new(false);
    let admitted = |names: &[&str]| {
        let is_admitted = (filter.classes)(names);
        left_out.set(left_out.get() || !is_admitted);
        is_admitted
    };
    let admitting = Filter {
        classes: &admitted,
        suspects: filter.suspects,
        recording: None,
    };
    let mut told = judge_candidates(last, summaries, &admitting, &aligned, candidates, count);
    let more = told.len() >= count;
    told.truncate(filter.suspects);
    let mut explaining: Vec<&Candidate> = Vec::new();
    let mut contents: Vec<Content> = Vec::new();
    let mut suspects: Vec<Suspect> = Vec::new();
    for (candidate, suspect) in &told {
        let context = SuspectContext::new(last, summaries, &aligned, candidate);
        let mut suspect = suspect.clone();
        evidence(&context, &mut suspect);
        let content = Content::of(candidate, &aligned, suspect.coverage.growth_bytes);
        if let Some(allocated) = &summaries[0].allocated {
            let bytes = content.growth_bytes;
            let growing = allocated.growing(aligned.last(), &content.last, None, bytes);
            (suspect.stacks, suspect.coverage) = (growing.stacks, growing.coverage);
            suspect.labels = growing.labels;
            suspect.allocated_through = through(&suspect.stacks);
        }
        joined::join(filter.recording, &mut suspect, &context);
        suspects.push(suspect);
        contents.push(content);
        // Direct buffers can be a suspect for their memory outside of the heap, although they are small inside the
        // heap.
        if candidate.growth() >= least.cast_signed() {
            explaining.push(candidate);
        }
    }
    // Sort the suspects by the size by which they were selected: the sum of memory in the heap and outside of it.
    suspects.sort_by_key(|s| {
        let outside = s
            .off_heap_bytes
            .last()
            .map_or(0, |bytes| bytes.cast_signed());
        std::cmp::Reverse(s.growth.retained_bytes.saturating_add(outside))
    });
    suspect::fold_collections(&mut suspects, suspect::holds_same_objects);
    for (rank, suspect) in (1..).zip(&mut suspects) {
        suspect.rank = rank;
        // A large size alone is not a leak. If there is no known leak pattern, there is nothing to fix.
        let has_pattern = suspect.detector.is_some();
        suspect.likely_fix = next_step::likely_fix(suspect).filter(|_| has_pattern);
        suspect.next = next_step::commands(suspect, &summaries[0].info.path);
    }
    add_known_leaks(Some(snapshot), &mut suspects);
    add_work(snapshot, &mut suspects);
    Found {
        suspects,
        contents,
        explained_bytes: aligned.explained_growth(&explaining),
        more,
        left_out: left_out.get(),
    }
}

/// Adds to the suspect the known leak pattern and the bound of the holder, if there are any.
fn evidence(context: &SuspectContext<'_>, suspect: &mut Suspect) {
    let finding = detect::find(context);
    suspect.detector = finding.as_ref().map(|f| f.detector.into());
    suspect.thread_local = thread_local_field(context, suspect);
    let found = finding.into_iter().flat_map(|f| f.sentences);
    let found = found.map(|sentence| sentence.to_string());
    suspect.reasons.splice(0..0, found);
    let bound = bounds::of(context).map(|b| b.sentence.to_string());
    suspect.reasons.extend(bound);
}

/// Returns the kinds of waste that occur in the dump, the largest savings first.
fn waste(summary: &WasteSummary) -> Vec<HeapWaste> {
    let all = WasteSummary::compared(std::slice::from_ref(summary), 1).waste;
    let last = |figures: &[u64]| figures.last().copied().unwrap_or(0);
    let rows = all.kinds.into_iter().map(|row| HeapWaste {
        kind: row.kind.into(),
        objects: last(&row.objects),
        bytes_to_win: last(&row.bytes_to_win),
        holder: row.holders.into_iter().next().map(|h| h.holder),
    });
    rows.filter(|row| row.bytes_to_win > 0).collect()
}
