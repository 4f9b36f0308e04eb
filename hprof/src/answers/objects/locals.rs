//! The objects to which the local variables of a frame refer.

use std::borrow::Cow;

use crate::answers::objects::named::sorted;
use crate::answers::objects::select_error::SelectError;
use crate::answers::objects::selector::{SUGGESTIONS, Selected};
use crate::answers::threads::{Frame, StackFrame};
use crate::snapshot::Snapshot;

/// Reports print this before the name of a frame if a local variable of the frame holds an object.
const LOCAL: &str = "local variable of ";

/// Returns the frame in a name. The name is a frame with its source line, or `local variable of` and a frame. Returns
/// `None` for other names.
pub(super) fn frame(name: &str) -> Option<&str> {
    // Reports of one dump print `CLASS, a local variable of FRAME`.
    let local = name
        .split_once(LOCAL)
        .filter(|(before, _)| before.is_empty() || *before == "a " || before.ends_with(", a "));
    let frame = local.map_or(name, |(_, frame)| frame);
    let frame = frame.strip_prefix("at ").unwrap_or(frame);
    let has_place = || {
        let (method, place) = frame.strip_suffix(')')?.rsplit_once('(')?;
        let is_place = place.contains('.')
            || place.starts_with("line ")
            || ["Native Method", "Unknown Source"].contains(&place);
        (is_place && method.contains('.')).then_some(())
    };
    (local.is_some() || has_place().is_some()).then_some(frame)
}

impl Snapshot {
    /// Returns the objects to which local variables of a frame refer, in all threads.
    pub(super) fn local_variables(
        &self,
        frame: &str,
        printed: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<Selected, SelectError> {
        let threads = self.threads();
        let frames = threads.iter().flat_map(|t| &t.frames);
        let of_method: Vec<(&StackFrame, String)> = frames
            .filter_map(|f| Some((f, line_suffix(frame, &f.frame, printed)?.to_owned())))
            .collect();
        let is_meant = |f: &Frame, place: &str| place.is_empty() || f.place() == place;
        let meant = of_method
            .iter()
            .filter(|(f, place)| is_meant(&f.frame, place));
        let meant: Vec<&StackFrame> = meant.map(|(f, _)| *f).collect();
        if meant.is_empty() {
            let mut similar: Vec<String> =
                of_method.iter().map(|(f, _)| f.frame.to_string()).collect();
            similar.sort_unstable();
            similar.dedup();
            similar.truncate(SUGGESTIONS);
            let frame = frame.to_owned();
            return Err(SelectError::NoFrame { frame, similar });
        }
        let locals = meant.iter().flat_map(|f| &f.locals);
        let objects = sorted(locals.map(|local| local.object).collect());
        if objects.is_empty() {
            let frame = frame.to_owned();
            return Err(SelectError::NoLocal { frame });
        }
        Ok(Selected::Values(objects))
    }
}

/// Returns the part of `name` after the method: the source line, such as `(Foo.java:42)`, or an empty string. Returns
/// `None` if the name is that of another method.
fn line_suffix<'a>(
    name: &'a str,
    frame: &Frame,
    printed: &dyn Fn(&str) -> Cow<'_, str>,
) -> Option<&'a str> {
    let after = |class: &str| {
        let method = name.strip_prefix(class)?.strip_prefix('.')?;
        method.strip_prefix(&*frame.method).map(str::trim_start)
    };
    let place = after(&frame.class).or_else(|| after(&printed(&frame.class)))?;
    (place.is_empty() || place.starts_with('(')).then_some(place)
}
