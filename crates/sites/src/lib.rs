//! The format of the data that the agent stores in the heap. The agent writes it, and the analyzer reads it from a
//! dump.
//!
//! # Location
//!
//! All data is reachable from the static fields of one class of the boot loader, [`CLASS`] (`heapdiff.SampleRef`),
//! which extends `java.lang.ref.PhantomReference`. A dump without this class was taken without the agent. Class and
//! fields do not change as long as the static field `format` is [`FORMAT`]. If `format` has another value, a reader
//! must report the value and read nothing else.
//!
//! ## Static fields ([`statics`])
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `format` | `int` | [`FORMAT`]; 0 while the agent is still starting: treat as no agent |
//! | `started` | `long` | start of the sampling, in milliseconds since 1970 |
//! | `pid` | `long` | process id |
//! | `strategy` | `int` | [`Strategy::code`] |
//! | `interval` | `long` | mean bytes between samples ([`Strategy::Bytes`]); 0 samples every allocation |
//! | `rate` | `long` | mean allocations between samples ([`Strategy::Count`], [`Strategy::Class`]); mean milliseconds between samples ([`Strategy::Time`]); else 0 |
//! | `firstInterval`, `firstRate` | `long` | `interval` and `rate` at the start of the sampling; the current values double whenever samples are downsampled, see below |
//! | `depth` | `int` | maximum number of frames of a stack |
//! | `verbosity` | `int` | content of frames: [`Verbosity::code`] |
//! | `counters` | `long[]` | [`Counter`]s, each at its [`Counter::index`]; a longer array has counters of later versions |
//! | `samples` | `Object[]` of `Object[]` | live samples: chunks of [`CHUNK`] elements, each `null` or a `SampleRef`; a chunk is `null` until needed |
//! | `classes` | `Object[]` of `Object[]` | class definitions, in the same form. Classes of the boot loader are included only if hidden, because the others are never unloaded |
//! | `blobs` | `Object[]` of `byte[]` | the site table, see [`SiteTable::decode`]; skip `null`s |
//! | `totals` | `Object[]` of `long[]` | samples of each site since the start: chunk `site / 1024` has the number of samples at index `2 * (site % 1024)`, followed by their bytes ([`TOTALS_CHUNK`]) |
//! | `classTotals` | `Object[]` of `long[]` | exact allocations (objects, bytes) of each type, in the same form by type id; only with [`Strategy::Class`], else `null`. Type 0 counts unknown classes. Updated once a second |
//! | `allocated` | `Object[]` of `long[]` | bytes that each site's samples represented when they were taken ([`Sampling::relative_bytes`]): chunk `site / 1024`, index `site % 1024`. While `totals` mixes all sampling rates, this is comparable with the weights of live samples. Older agents do not have the field |
//! | `siteTypes` | `Object[]` of `long[]` | type id of the last sample of each site, in the form of `allocated`; 0 if unknown. Only if not all samples are tracked (generational ZGC), else `null`. Older agents do not have the field |
//! | `counted` | `long[]` | with `count=on`: [`Counted`]s, each at its [`Counted::index`]; otherwise zeros. Older agents do not have this and the next two fields |
//! | `countedSites` | `Object[]` of `byte[]` | the allocating lines of code, in the form of `blobs`, with separate ids: site `n` has one frame, and type `n` is the class allocated there |
//! | `countedTotals` | `Object[]` of `long[]` | executed allocations of each line in `countedSites`, followed by their bytes for arrays and 0 for other objects, in the form of `totals`. Copied at most once a second: the values are those at `counted`'s time or, in part, later |
//! | `usage` | `Object[]` | with `usage=on`: the use of each watched collection, `null` or an object of the class [`usage::CLASS`] with the fields in [`usage`]; otherwise empty. Older agents do not have the field |
//! | `recent` | `Object[]` | ring buffer of the most recently collected samples; `null`s until it is full |
//! | `recentDied` | `int[]` | time at which each of `recent` was found dead, in the form of `time` below |
//! | `reservoir` | `Object[]` | a uniform random choice of all collected samples |
//! | `reservoirDied` | `int[]` | time at which each of `reservoir` was found dead |
//! | `dead`, `places` | `Object[]`, `int[]` | work space of the agent's thread; `null` until it starts |
//!
//! `heapdiff.SampleRef` may have further static fields, for the agent only.
//!
//! ## Instance fields ([`fields`])
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `referent` | of `java.lang.ref.Reference` | the sampled object; the class object for a class definition; `null` once collected |
//! | `mark` | `int` | written last: [`MARK_SAMPLE`] or [`MARK_CLASS`]; 0 means that the `SampleRef` is incomplete, ignore it |
//! | `uid` | `long` | unique in this JVM and equal in all its dumps; ascending from 1, with gaps |
//! | `size` | `long` | the object's bytes as the JVM reported them; 0 for a class definition |
//! | `site` | `int` | id of the stack in the site table; 0 if unknown |
//! | `type` | `int` | id of the class's name in the site table; 0 if unknown |
//! | `thread` | `int` | id of the string with the thread's name and its labels ([`labels`]); 0 if unknown |
//! | `time` | `int` | unsigned: milliseconds from `started` to the allocation, at most 2³² - 1 |
//!
//! Read live samples from `samples` and `classes`, and collected samples from `recent` and `reservoir`. Do not read all
//! instances of the class: a dump with unreachable objects contains instances that the agent has dropped. A referent
//! that is not `null` may be unreachable, if there was no GC since it became unreachable. When an object is collected,
//! its sample stays in `samples` with a `null` referent until the agent's thread removes it.
//!
//! An entry in `classes` represents exactly one class definition. The weight of a sample is [`Sampling::weight`].
//!
//! ## Objects of the agent
//!
//! The agent's objects are the class, its instances, and everything reachable from its static fields up to the
//! `referent`s: the arrays above and their chunks. JNI global references of the agent refer to the same arrays, so in a
//! dominator tree most of them are children of the root. To find all objects of the agent, follow the references from
//! the static fields. The agent also has one thread, `heapdiff agent`, and the class [`LABELS_CLASS`], which has no
//! data.
//!
//! ## Downsampling (thinning)
//!
//! When the table of `max_samples` samples is nearly full, or has no room for a sample, the agent doubles `interval`
//! (or `rate`). It drops the samples that would not have been taken with the new interval, so estimates stay unbiased.
//! [`Sampling::would_take`] makes this choice from the uid and the size of a sample. [`Counter::Thinned`] counts the
//! dropped samples.
//!
//! A dump may be taken at any moment during downsampling, so the new interval is written first. A reader must ignore
//! samples that the interval in the dump does not keep, because the agent had not dropped them yet. To match the
//! samples of two dumps, apply the later dump's interval to the samples of the earlier dump. A sample that this
//! interval does not keep is missing in the later dump because of downsampling, not because its object died.
//!
//! A sample for which the table has no room is lost. [`Counter::DroppedBytes`] counts the bytes that lost samples
//! represent. It is unknown at which sites their objects were allocated, and whether these objects are alive.
//!
//! # The site table
//!
//! `blobs` is a log. Each `byte[]` in it is a sequence of batches, each at an offset that is a multiple of 8. Eight
//! zero bytes are a gap to skip: space reserved by a thread that has not written yet, or the unused end of a `byte[]`.
//!
//! ```text
//! batch  := 0x48 'H'  0x44 'D'  version (1)  0  body length u32le  body checksum u32le  body  zeros to 8
//! body   := record*
//! record := 1 id length bytes          a string, UTF-8
//!         | 2 id class name file       a method; string ids; file 0: unknown
//!         | 3 id method line           a frame; line is zigzag: > 0 line, 0 unknown, -1 native method
//!         | 4 id flags count frame*    a site; frame ids, innermost first; flag 1: the stack was deeper
//!         | 5 id string                a type: the name of a class as in Java source
//! ```
//!
//! All numbers in records are unsigned LEB128. Each kind of record has separate ids, starting at 1. The checksum is the
//! 32-bit FNV-1a hash of the body. A definition may occur more than once, always with the same content, because two
//! threads may record the same new stack. A definition may come after its use in another batch. Strings, methods and
//! frames are stored once. Names of hidden classes have neither the suffix that the JVM adds nor the number of a
//! lambda.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod attach;
pub mod births;
mod counts;
mod decode;
mod encode;
mod estimate;
mod generated;
mod interval;
pub mod labels;
mod names;
mod originals;
pub mod packages;
pub mod piped;
mod stratum;
pub mod types;
pub mod usage;
mod weight;

pub use counts::{CountedSite, Counts, MOST_NAMES};
pub use decode::{DecodeError, Fault, Frame, Line, Site, SiteTable, names_only};
pub use encode::{BATCH_HEADER, Batch, align};
pub use estimate::{Estimate, Unseen, whole};
pub use interval::Interval;
pub use names::{
    CHUNK, CLASS, CLASS_INTERNAL, Counted, Counter, FORMAT, LABELS_CLASS, MARK_CLASS, MARK_SAMPLE,
    TOTALS_CHUNK, Verbosity, fields, statics,
};
pub use originals::{DEEPEST, Originals, OwnedFrame};
pub use stratum::{
    Division, Follow, Keys, Known, Part, Stratum, Totals, corrected_intervals, size_class,
};
pub use weight::{Sampling, Strategy, Weight};
