//! What the agent leaves in the heap, shared by the agent that writes it and the analyser that
//! reads it out of a dump.
//!
//! # Where it is
//!
//! Everything hangs on the static fields of one class of the boot loader, [`CLASS`]
//! (`heapdiff.SampleRef`), which extends `java.lang.ref.PhantomReference`. A dump without that
//! class was taken without the agent. Class and fields stay as they are for as long as the static
//! `format` is [`FORMAT`]; a reader that finds another number must say so and read nothing more.
//!
//! ## Static fields ([`statics`])
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `format` | `int` | [`FORMAT`]; 0 while the agent is still setting up: treat as no agent |
//! | `started` | `long` | when sampling was set up, milliseconds since the epoch |
//! | `pid` | `long` | the process |
//! | `strategy` | `int` | [`Strategy::code`] |
//! | `interval` | `long` | mean bytes between samples ([`Strategy::Bytes`]); 0: every allocation |
//! | `rate` | `long` | mean allocations between samples ([`Strategy::Count`], [`Strategy::Class`]); mean milliseconds between samples ([`Strategy::Time`]); else 0 |
//! | `firstInterval`, `firstRate` | `long` | what they were at first: they double whenever samples are thinned, see below |
//! | `depth` | `int` | the most frames a stack has |
//! | `verbosity` | `int` | what frames tell: [`Verbosity::code`] |
//! | `counters` | `long[]` | [`Counter`]s, each at its [`Counter::index`]; longer arrays have counters of later versions |
//! | `samples` | `Object[]` of `Object[]` | live samples: chunks of [`CHUNK`] places, `null` or a `SampleRef`; a chunk is `null` until needed |
//! | `classes` | `Object[]` of `Object[]` | class definitions, in the same form; those of the boot loader only if hidden (the others stay for ever) |
//! | `blobs` | `Object[]` of `byte[]` | the site table, see [`SiteTable::decode`]; skip `null`s |
//! | `totals` | `Object[]` of `long[]` | what each site allocated since the start: chunk `site / 1024` holds samples at `2 * (site % 1024)` and their bytes at the place after it ([`TOTALS_CHUNK`]) |
//! | `classTotals` | `Object[]` of `long[]` | exact allocations (objects, bytes) of each type, same form by type id; only with [`Strategy::Class`], else `null`. Those of type 0 are of unknown classes. Brought up to date once a second |
//! | `allocated` | `Object[]` of `long[]` | the bytes that each site's samples stood for when they were taken ([`Sampling::relative_bytes`]): chunk `site / 1024`, place `site % 1024`. What `totals` counts was taken at all rates there were; this can be set against the live samples' weights. The field is missing where an older agent wrote |
//! | `siteTypes` | `Object[]` of `long[]` | the type id of the last sample of each site, in the form of `allocated`; 0: unknown. Only where not all samples are followed (generational ZGC), else `null`. The field is missing where an older agent wrote |
//! | `counted` | `long[]` | with `count=on`: [`Counted`]s, each at its [`Counted::index`]; without it zeroes. This and the next two are missing where an older agent wrote |
//! | `countedSites` | `Object[]` of `byte[]` | the places that allocate, in the form of `blobs`: site `n` has one frame, and type `n` is the class of what is allocated there. Its ids are its own |
//! | `countedTotals` | `Object[]` of `long[]` | executed allocations of each of these places, and, of arrays, their bytes, in the form of `totals`; of other objects 0 in place of bytes. Copied once a second at most: as they were at `counted`'s time or, in part, later |
//! | `usage` | `Object[]` | with `usage=on`: what each collection that is watched was used for, `null` or of the class [`usage::CLASS`], whose fields [`usage`] tells; else without elements. It is missing where an older agent wrote |
//! | `recent` | `Object[]` | ring of the last collected samples, oldest overwritten; `null`s where it is not full yet |
//! | `recentDied` | `int[]` | when each of `recent` was found to be collected, as `time` below |
//! | `reservoir` | `Object[]` | a uniform choice of all collected samples |
//! | `reservoirDied` | `int[]` | the same for `reservoir` |
//! | `dead`, `places` | `Object[]`, `int[]` | scratch of the agent's thread; `null` until it is at work |
//!
//! `heapdiff.SampleRef` may have further static fields for the agent's own use.
//!
//! ## Instance fields ([`fields`])
//!
//! | field | type | meaning |
//! |---|---|---|
//! | `referent` | of `java.lang.ref.Reference` | the sampled object; the class object for a class definition; `null` once collected |
//! | `mark` | `int` | written last: 0 the object is not complete, ignore it; [`MARK_SAMPLE`]; [`MARK_CLASS`] |
//! | `uid` | `long` | unique in this JVM, ascending from 1 with gaps, the same in every dump |
//! | `size` | `long` | the object's bytes as the JVM reported them; 0 for a class definition |
//! | `site` | `int` | id of the stack in the site table; 0: unknown |
//! | `type` | `int` | id of the class's name in the site table; 0: unknown |
//! | `thread` | `int` | id of the string with the thread's name; 0: unknown |
//! | `time` | `int` | unsigned: milliseconds from `started` to the allocation; stops at 2³² - 1 |
//!
//! Take samples from `samples` and `classes`, collected ones from `recent` and `reservoir`, not from
//! all instances of the class: in a dump with garbage there are instances that the agent has
//! dropped. A referent that is not `null` may still be unreachable (the collector has not
//! run, or the dump was not preceded by a collection); and one that was collected stays in
//! `samples` with a `null` referent until the agent's thread has passed by.
//!
//! An entry in `classes` stands for one class definition, never for an estimate. Samples weigh as
//! [`Sampling::weight`] says.
//!
//! ## What belongs to the agent
//!
//! The class, its instances, and all that its static fields lead to up to the `referent`s: the arrays
//! above and their chunks. JNI global references of the agent hold the same arrays, so in a
//! dominator tree most hang on the root itself: tell them by walking from the static fields. Besides
//! there is one thread, `heapdiff agent`.
//!
//! ## Thinning
//!
//! When the table of `max_samples` places is nearly full, or samples found no place in it, the agent
//! doubles `interval` (or `rate`) and drops those samples that the new interval would not have
//! taken, so that estimates stay unbiased; [`Sampling::keeps`] decides from uid and size alone.
//! [`Counter::Thinned`] counts them. A dump may be taken at any moment of that, so the new interval is
//! written first: a reader has to leave out the samples that it does not keep, for the agent is about to
//! drop them. For identity across dumps apply the
//! later dump's thinning to the earlier one's samples: a sample which it does not keep is missing
//! in the later dump for that reason, not because it died.
//!
//! What found no place meanwhile is lost. [`Counter::DroppedBytes`] says how much it stood for: nothing tells
//! which sites those samples were of, or whether their objects are alive.
//!
//! # The site table
//!
//! `blobs` is a log. Each piece is a row of batches, each at an offset that is a multiple of 8;
//! eight zero bytes are a gap to step over (space reserved by a thread that has not written
//! yet, or the unused end of a piece).
//!
//! ```text
//! batch  := 0x48 'H'  0x44 'D'  version (1)  0  body length u32le  body checksum u32le  body  zeros to 8
//! body   := record*
//! record := 1 id length bytes          a string, UTF-8
//!         | 2 id class name file       a method; string ids; file 0: unknown
//!         | 3 id method line           a frame; line is zigzag: > 0 line, 0 unknown, -1 native method
//!         | 4 id flags count frame*    a site; frame ids, leaf first; flag 1: the stack was deeper
//!         | 5 id string                a type: the name of a class as in Java source
//! ```
//!
//! All numbers in records are unsigned LEB128. Ids start at 1, each kind has its own. The checksum is
//! FNV-1a of the body, 32 bits. Definitions may come more than once, then all are equal (two threads
//! met the same new stack); a definition may follow its use in another batch. Strings, methods and frames are
//! stored once. Names of hidden classes come without the suffix that the JVM adds, and without
//! the number of a lambda.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod attach;
pub mod births;
mod counts;
mod decode;
mod encode;
mod estimate;
mod generated;
mod interval;
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
    CHUNK, CLASS, CLASS_INTERNAL, Counted, Counter, FORMAT, MARK_CLASS, MARK_SAMPLE, TOTALS_CHUNK,
    Verbosity, fields, statics,
};
pub use originals::{DEEPEST, Originals, OwnedFrame};
pub use stratum::{Division, Follow, Keys, Known, Part, Stratum, Totals, corrected, size_class};
pub use weight::{Sampling, Strategy, Weight};
