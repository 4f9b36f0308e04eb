//! Collected samples that a dump finds: their Java objects, in two arrays each of which has another that says when
//! they were found to be collected.

use heapdiff_sites::statics;
use jni::Env;
use jni::errors::Result;
use jni::objects::{Global, JIntArray, JObjectArray};

use super::Reservoir;
use crate::heap::{INTS, held, static_objects};
use crate::jvmti::java::RefClass;

struct RefArray {
    references: Global<JObjectArray<'static>>,
    died: Global<JIntArray<'static>>,
}

impl RefArray {
    fn create(
        env: &mut Env<'_>,
        refs: &RefClass,
        (name, died): (&str, &str),
        len: usize,
    ) -> Result<Self> {
        let array = JIntArray::new(env, len)?;
        refs.set_static(env, died, INTS, (&array).into())?;
        Ok(Self {
            died: held(env, array)?,
            references: static_objects(env, refs, name, len)?,
        })
    }

    fn put(
        &self,
        env: &mut Env<'_>,
        at: usize,
        dead: &JObjectArray<'_>,
        index: usize,
        now: u32,
    ) -> Result<()> {
        let reference = dead.get_element(env, index)?;
        let place = i32::try_from(at).unwrap_or(0);
        self.died.set_region(env, place, &[now.cast_signed()])?;
        self.references.set_element(env, at, &reference)?;
        env.delete_local_ref(reference);
        Ok(())
    }
}

/// The references of the last collected samples, and of a uniform choice of all.
pub(crate) struct CollectedRefs {
    recent: RefArray,
    chosen: RefArray,
    reservoir: Reservoir,
}

impl CollectedRefs {
    pub(crate) fn create(
        env: &mut Env<'_>,
        refs: &RefClass,
        len: usize,
        seed: u64,
    ) -> Result<Self> {
        let recent = (statics::RECENT, statics::RECENT_DIED);
        let chosen = (statics::RESERVOIR, statics::RESERVOIR_DIED);
        Ok(Self {
            recent: RefArray::create(env, refs, recent, len)?,
            chosen: RefArray::create(env, refs, chosen, len)?,
            reservoir: Reservoir::new(len, seed),
        })
    }

    /// Remembers some of `count` references in `dead`; `seen` were before them.
    pub(crate) fn add(
        &self,
        env: &mut Env<'_>,
        dead: &JObjectArray<'_>,
        count: usize,
        seen: u64,
        now: u32,
    ) -> Result<()> {
        // Those before would be overwritten at once.
        let last = count.saturating_sub(self.reservoir.len());
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
