//! Opens dumps for commands, and finds the objects that selectors name.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use heapdiff_diff::samples::{AgentObjects, Sample, Samples};
use heapdiff_diff::{FrameParts, quoted};
use heapdiff_sites::CLASS;
use heapdiff_sites::types::stable;
use hprof::answers::{SelectError, Selected, Selector};
use hprof::{ObjectIndex, Snapshot};

use crate::failure::{Failure, Result};
use crate::frame;
use crate::index;
use crate::job::Setup;
use crate::progress::Meter;

/// Opens and analyzes one dump. Progress is shown until the meter is dropped.
pub(super) fn open<'a>(setup: &'a Setup, dump: &Path) -> Result<(Opened<'a>, Meter)> {
    let meter = Meter::new(setup.progress, dump);
    if let Some((_, snapshot)) = setup.open.0.iter().find(|(path, _)| path == dump) {
        let opened = Opened {
            snapshot: Arc::clone(snapshot),
            setup,
            indexed: true,
        };
        return Ok((opened, meter));
    }
    let options = &setup.analysis;
    let (snapshot, indexed) = match index::read(setup, dump, &meter, Snapshot::from_index) {
        Some(snapshot) => (snapshot, true),
        None => {
            let snapshot = Snapshot::open(dump, options, &meter);
            (with_objects(snapshot, dump)?, false)
        }
    };
    let opened = Opened {
        snapshot: Arc::new(snapshot),
        setup,
        indexed,
    };
    Ok((opened, meter))
}

/// An open dump that a command analyzes.
pub(super) struct Opened<'a> {
    pub(super) snapshot: Arc<Snapshot>,
    setup: &'a Setup,
    /// True if the snapshot was read from an index.
    indexed: bool,
}

impl Deref for Opened<'_> {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Drop for Opened<'_> {
    /// Schedules an index to be written for the next command, unless the snapshot was read from an undamaged index.
    fn drop(&mut self) {
        let damaged = self.indexed && hprof::index::is_damaged(&self.snapshot);
        if damaged {
            index::note_damage(&self.snapshot, self.setup);
        }
        if !self.indexed || damaged {
            index::write_later(self.snapshot.clone(), self.setup);
        }
    }
}

/// Opens a dump, from its index if it has one. Reuses the memory of `previous`, a snapshot that is no longer needed.
///
/// If `holders` is true and there is no index, also computes the data that is needed to find the holders of objects.
pub(super) fn open_after(
    previous: Option<Snapshot>,
    setup: &Setup,
    dump: &Path,
    holders: bool,
) -> Result<(Snapshot, Meter)> {
    let meter = Meter::new(setup.progress, dump);
    if let Some(snapshot) = index::read(setup, dump, &meter, Snapshot::from_index) {
        return Ok((snapshot, meter));
    }
    let mut options = setup.analysis.clone();
    options.holders = holders;
    let snapshot = match previous {
        Some(previous) => Snapshot::open_after(previous, dump, &options, &meter),
        None => Snapshot::open(dump, &options, &meter),
    };
    Ok((with_objects(snapshot, dump)?, meter))
}

/// Opens a dump that has no index or summary, and computes the data that is needed to find the holders of objects.
/// `name` is the name of the dump in messages.
pub(super) fn open_called(setup: &Setup, dump: &Path, name: &Path) -> Result<(Snapshot, Meter)> {
    let meter = Meter::new(setup.progress, name);
    let mut options = setup.analysis.clone();
    options.holders = true;
    let snapshot = Snapshot::open(dump, &options, &meter);
    Ok((with_objects(snapshot, name)?, meter))
}

/// Returns an error in two cases: the dump could not be opened, or the dump is complete and has classes but no
/// instances.
fn with_objects(snapshot: hprof::Result<Snapshot>, name: &Path) -> Result<Snapshot> {
    let snapshot = snapshot.map_err(|e| Failure::input(name, &e))?;
    // Class objects come first, so the dump has no instances if its last object is a class.
    let last = ObjectIndex((snapshot.object_count() as u32).saturating_sub(1));
    if snapshot.represents(last).is_some() && !snapshot.is_partial() {
        return Err(Failure::no_objects(name));
    }
    Ok(snapshot)
}

/// The objects of a dump that a selector names.
pub(super) struct Selection {
    pub(super) objects: Vec<ObjectIndex>,
    /// The agent's objects, which are not part of the program's heap.
    pub(super) own: AgentObjects,
    pub(super) shows_own: bool,
    /// True if the selector names values: of a field, of elements of arrays, or of local variables.
    pub(super) are_values: bool,
}

impl Selection {
    /// Returns the objects that the report leaves out. These are the agent's objects, unless the report shows them.
    pub(super) fn hidden(&self) -> &[ObjectIndex] {
        if self.shows_own {
            &[]
        } else {
            self.own.objects()
        }
    }

    pub(super) fn hides(&self, object: ObjectIndex) -> bool {
        !self.shows_own && self.own.contains(object)
    }
}

/// Returns the objects that a selector names. Leaves out the agent's objects, unless the selector names the agent or
/// selects only objects of the agent.
pub(super) fn select(snapshot: &Snapshot, dump: &Path, selector: &Selector) -> Result<Selection> {
    let failure = |e: SelectError| {
        let failure = Failure::usage(format!("{}: {e}", dump.display()));
        match hint(snapshot, dump, selector, &e) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    };
    let selected = snapshot
        .resolve_printed(selector, &stable)
        .map_err(failure)?;
    let are_values = matches!(selected, Selected::Values(_));
    let mut objects = snapshot.selected(selector, selected).map_err(failure)?;
    let own = AgentObjects::find(snapshot);
    let package = CLASS.split('.').next().unwrap_or(CLASS);
    let shows_own =
        objects.iter().all(|&o| own.contains(o)) || selector.to_string().contains(package);
    if !shows_own {
        objects.retain(|&o| !own.contains(o));
    }
    Ok(Selection {
        objects,
        own,
        shows_own,
        are_values,
    })
}

/// Returns a hint if the selector matches a frame in the stacks of samples, and no object. A frame is not an object of
/// the heap, so the user needs another command.
fn hint(
    snapshot: &Snapshot,
    dump: &Path,
    selector: &Selector,
    error: &SelectError,
) -> Option<String> {
    let frame = match (error, selector) {
        (SelectError::NoFrame { frame, .. } | SelectError::NoLocal { frame }, _) => frame,
        (SelectError::NoField { .. } | SelectError::NoClass { .. }, Selector::Name(name)) => name,
        _ => return None,
    };
    let dump = quoted(&dump.display().to_string());
    let frame = frame::remove_file_space(frame);
    let is_meant = |text: &str| text == frame || FrameParts::parse(text).function == frame;
    let (samples, _) = Samples::from_snapshot(snapshot, &AgentObjects::find(snapshot));
    let allocated = samples.is_some_and(|samples| {
        let frames = |sample: &Sample| samples.sites.frames(sample.site).any(is_meant);
        samples.live.iter().any(frames)
    });
    if allocated {
        let focus = quoted(&frame);
        return Some(format!(
            "the frame is in the allocation stacks of live samples: heapdiff sites {dump} --focus {focus}"
        ));
    }
    let is_frame = matches!(
        error,
        SelectError::NoFrame { .. } | SelectError::NoLocal { .. }
    );
    is_frame.then(|| format!("heapdiff threads {dump} lists the frames"))
}
