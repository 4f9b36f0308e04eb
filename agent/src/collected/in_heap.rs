//! Stores collected samples in the heap, so that dumps contain them. Two arrays contain the Java objects of the
//! samples. For each of the two arrays, a parallel array contains the times when the samples were found to be
//! collected.

use std::sync::Arc;

use heapdiff_sites::statics;

use super::Reservoir;
use crate::heap::Fields;
use crate::jvmti::calls::{Env, Global, Ints, Local, Objects, Ref, Result};

struct RefArray {
    references: Arc<Global<Objects>>,
    died: Arc<Global<Ints>>,
}

impl RefArray {
    fn create(
        env: &Env<'_>,
        fields: &mut Fields,
        (name, died): (&'static str, &'static str),
        len: usize,
    ) -> Result<Self> {
        Ok(Self {
            died: fields.ints(env, died, len)?,
            references: fields.objects(env, name, len)?,
        })
    }

    fn put(
        &self,
        env: &Env<'_>,
        at: usize,
        dead: Ref<'_, Objects>,
        index: usize,
        now: u32,
    ) -> Result<()> {
        let reference = dead.at(env, index)?;
        self.died.get().put(env, at, &[now.cast_signed()])?;
        let reference = reference.as_ref().map(Local::get);
        self.references.get().put(env, at, reference)
    }
}

/// The references of the most recent collected samples, and of a uniform random selection of all collected samples.
pub(crate) struct CollectedRefs {
    recent: RefArray,
    chosen: RefArray,
    reservoir: Reservoir,
}

impl CollectedRefs {
    pub(crate) fn create(
        env: &Env<'_>,
        fields: &mut Fields,
        len: usize,
        seed: u64,
    ) -> Result<Self> {
        let recent = (statics::RECENT, statics::RECENT_DIED);
        let chosen = (statics::RESERVOIR, statics::RESERVOIR_DIED);
        Ok(Self {
            recent: RefArray::create(env, fields, recent, len)?,
            chosen: RefArray::create(env, fields, chosen, len)?,
            reservoir: Reservoir::new(len, len, seed),
        })
    }

    /// Adds the first `count` samples in the array `dead`. `now` is the time when these samples were found to be
    /// collected. `seen` is the number of samples that were found to be collected before these.
    pub(crate) fn add(
        &self,
        env: &Env<'_>,
        dead: Ref<'_, Objects>,
        count: usize,
        seen: u64,
        now: u32,
    ) -> Result<()> {
        // If `dead` has more references than the list of recent samples has slots, store only the last references in
        // that list. All earlier references would be overwritten at once.
        let last = count.saturating_sub(self.reservoir.recent);
        for index in 0..count {
            let places = self.reservoir.places(seen + index as u64);
            if let Some(at) = places.recent
                && index >= last
            {
                self.recent.put(env, at, dead, index, now)?;
            }
            if let Some(at) = places.chosen {
                self.chosen.put(env, at, dead, index, now)?;
            }
        }
        Ok(())
    }
}
