//! Collected samples that are remembered: the last ones, and a uniform choice of all.

use heapdiff_sites::statics;
use jni::Env;
use jni::errors::Result;
use jni::objects::{Global, JIntArray, JObjectArray};

use crate::chooser::Random;
use crate::heap::{INTS, held, static_objects};
use crate::jvmti::java::RefClass;

struct Shelf {
    references: Global<JObjectArray<'static>>,
    died: Global<JIntArray<'static>>,
}

impl Shelf {
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

/// The ring of recent ones and the reservoir.
pub(crate) struct Garbage {
    recent: Shelf,
    reservoir: Shelf,
    len: usize,
    random: Random,
}

impl Garbage {
    pub(crate) fn create(
        env: &mut Env<'_>,
        refs: &RefClass,
        len: usize,
        seed: u64,
    ) -> Result<Self> {
        let recent = (statics::RECENT, statics::RECENT_DIED);
        let reservoir = (statics::RESERVOIR, statics::RESERVOIR_DIED);
        Ok(Self {
            recent: Shelf::create(env, refs, recent, len)?,
            reservoir: Shelf::create(env, refs, reservoir, len)?,
            len,
            random: Random::new(seed),
        })
    }

    /// Remembers some of `count` references in `dead`; `seen` were before them.
    pub(crate) fn bury(
        &self,
        env: &mut Env<'_>,
        dead: &JObjectArray<'_>,
        count: usize,
        seen: u64,
        now: u32,
    ) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let len = self.len as u64;
        let last = count.saturating_sub(self.len);
        for index in 0..count {
            let number = seen + index as u64;
            if index >= last {
                let at = usize::try_from(number % len).unwrap_or(0);
                self.recent.put(env, at, dead, index, now)?;
            }
            // Algorithm R (Vitter 1985): number n stays with probability len / n.
            let place = if number < len {
                number
            } else {
                self.random.below(number + 1)
            };
            if let Ok(at) = usize::try_from(place)
                && at < self.len
            {
                self.reservoir.put(env, at, dead, index, now)?;
            }
        }
        Ok(())
    }
}
