//! The agent's initial objects in the Java heap. Either all of them are created, or, if the heap is full, none.

use std::process;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use heapdiff_sites::{Counter, Strategy, statics};

use crate::collected::CollectedRefs;
use crate::counting::InHeap;
use crate::heap::{Blobs, Fields};
use crate::intern::{MAX_SITES, MAX_TYPES};
use crate::jvm_stats::{largest_heap, runtime};
use crate::jvmti::calls::{Env, Global, Local, Longs, Result};
use crate::options::Options;
use crate::pace::Pace;
use crate::reaper::Found;
use crate::sample_ref::RefClass;
use crate::sampler::MAX_CLASSES;
use crate::table::Table;
use crate::totals::Totals;
use crate::unproven::{Unproven, is_to_follow_few};

/// The agent's new Java objects: arrays that are not published yet, and threads that are not started yet. If this value
/// is dropped, nothing refers to these objects any more.
pub(crate) struct Ground<'local> {
    pub(crate) refs: Arc<RefClass>,
    /// Values for the static fields of the sample class.
    pub(crate) fields: Fields,
    pub(crate) seed: u64,
    pub(crate) shown: Arc<Global<Longs>>,
    pub(crate) runtime: Arc<Global>,
    pub(crate) unproven: Option<Unproven>,
    pub(crate) class_totals: Option<Totals<2>>,
    pub(crate) site_types: Option<Totals<1>>,
    pub(crate) blobs: Blobs,
    pub(crate) samples: Table,
    pub(crate) classes: Table,
    pub(crate) totals: Totals<2>,
    pub(crate) allocated: Totals<1>,
    pub(crate) collected: CollectedRefs,
    pub(crate) found: Found,
    pub(crate) counted: Option<InHeap>,
    pub(crate) threads: Threads<'local>,
}

/// The Java threads of the agent: the agent's thread, the trace's thread if there is a trace, and the guard's thread if
/// there is a guard.
pub(crate) type Threads<'local> = (Local<'local>, Option<Local<'local>>, Option<Local<'local>>);

impl<'local> Ground<'local> {
    pub(crate) fn make(env: &Env<'local>, options: &Options, refs: Arc<RefClass>) -> Result<Self> {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let seed = u64::from(since_epoch.subsec_nanos()) ^ u64::from(process::id()) << 32;
        let runtime = Arc::new(runtime(env)?.new_global_ref(env)?);
        let largest = || largest_heap(env, runtime.get());
        let unproven = is_to_follow_few(options).then(largest).transpose()?;
        let mut fields = Fields::default();
        let of = &mut fields;
        let has_untracked = unproven.is_some() || env.jvmti().samples_value_objects();
        let site_types = has_untracked
            .then(|| Totals::create(env, of, statics::SITE_TYPES, MAX_SITES))
            .transpose()?;
        Ok(Self {
            refs,
            seed,
            shown: of.longs(env, statics::COUNTERS, Counter::ALL.len())?,
            runtime,
            unproven: unproven.map(|largest| {
                // If the user has set the option `follow`, the number of tracked samples per second is not limited.
                let pace = options.follow.is_none().then(|| Pace::new(largest));
                Unproven::new(largest, pace)
            }),
            class_totals: match options.sampling.strategy {
                Strategy::Class => Some(Totals::create(env, of, statics::CLASS_TOTALS, MAX_TYPES)?),
                _ => None,
            },
            site_types,
            blobs: Blobs::create(env, of, statics::BLOBS)?,
            samples: Table::create(env, of, statics::SAMPLES, options.max_samples)?,
            classes: Table::create(env, of, statics::CLASSES, MAX_CLASSES)?,
            totals: Totals::create(env, of, statics::TOTALS, MAX_SITES)?,
            allocated: Totals::create(env, of, statics::ALLOCATED, MAX_SITES)?,
            collected: CollectedRefs::create(env, of, options.garbage, seed)?,
            found: Found::create(env, of)?,
            counted: {
                // This empty array replaces the array with the usage counts of an earlier agent.
                of.objects(env, statics::USAGE, 0)?;
                InHeap::create(env, of, options.count)?
            },
            threads: (
                env.thread("heapdiff agent")?,
                (options.trace.as_ref())
                    .map(|_| env.thread("heapdiff trace"))
                    .transpose()?,
                (options.guard.as_ref())
                    .map(|_| env.thread("heapdiff guard"))
                    .transpose()?,
            ),
            fields,
        })
    }
}
