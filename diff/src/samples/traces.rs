//! Reads dumps that name the stack trace of each object, such as those of JDK 8's `-agentlib:hprof`.

use std::collections::HashMap;

use hprof::{ObjectIndex, Snapshot};

use super::{NameTable, Origin, Sample, Samples, SiteId, Sites, exact};
use crate::samples::frames;

/// Returns a sample for every reachable object with a stack trace. Each sample represents only itself.
pub(super) fn read(snapshot: &Snapshot) -> Option<Samples> {
    let traces = snapshot.traces();
    let mut sites = Sites::default();
    let mut names = NameTable::new();
    let mut known: HashMap<u32, Option<SiteId>> = HashMap::new();
    let mut classes: HashMap<Option<hprof::ClassIndex>, u32> = HashMap::new();
    let (mut live, mut unreachable) = (Vec::new(), 0);
    let mut totals: Vec<(u64, u64)> = Vec::new();
    for (object, serial) in snapshot.allocation_traces() {
        let site = *known.entry(serial).or_insert_with(|| {
            let frames = traces.frames(serial);
            let readable = frames.iter().map(frames::dumped);
            (!frames.is_empty()).then(|| sites.add(readable))
        });
        // Skip the object if its stack trace has no frames, because it carries no information.
        let Some(site) = site else { continue };
        let size = snapshot.shallow_bytes(object);
        totals.resize(totals.len().max(sites.len()), (0, 0));
        let total = &mut totals[site.0 as usize];
        *total = (total.0 + 1, total.1 + size);
        if !snapshot.tree().is_reachable(object) {
            unreachable += 1;
            continue;
        }
        let name = |_: &Option<_>| names.number(&snapshot.name(object));
        let class = snapshot.class_of(object);
        let class = *classes.entry(class).or_insert_with_key(name);
        live.push(sample(object, size, site, class));
    }
    (!live.is_empty()).then_some(Samples {
        origin: Origin::Traces,
        live,
        collected: Vec::new(),
        sites,
        totals,
        allocated: Vec::new(),
        site_classes: Vec::new(),
        classes: None,
        at_sites: None,
        counting: None,
        names: names.names,
        counted: Vec::new(),
        unfinished: 0,
        unreachable,
    })
}

fn sample(object: ObjectIndex, size: u64, site: SiteId, class: u32) -> Sample {
    Sample {
        object,
        uid: 0,
        size,
        site,
        class,
        thread: 0,
        time_ms: 0,
        is_definition: false,
        weight: exact(1, size),
        counted: u32::MAX,
    }
}
