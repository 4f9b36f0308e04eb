//! Summary files. A summary is stored as bytes, and can then replace the dump in the next comparison.
//!
//! A decoded summary equals the encoded one, except for the name that the report gives the dump. Inconsistent data is
//! rejected. Examples are an index outside of its list, a trie node whose parent is not an earlier node, and a figure
//! so large that sums could overflow.

use std::collections::BTreeMap;
use std::path::Path;

use heapdiff_model::diff::{AgentInfo, AssumedRoots, LayoutInfo, SnapshotInfo};
use hprof::index::{Decoder, Encoder, FileStamp, IndexFault, Kept};
use hprof::sizes::Total;
use hprof::{Options, Refs, Snapshot};

use crate::facts::Facts;
use crate::origin::Origin;
use crate::samples::attribution::Attribution;
use crate::summary::stats::{DumpStats, OffHeap};
use crate::summary::{ClassFigures, ClassKey, Names, SavedRecording, Summary};
use crate::trie::{StepId, Trie};

/// Version of the format of cached summaries. It must be increased if the content of the summaries changes, or if the
/// encoding changes. A test checks both.
pub(crate) const VERSION: u32 = 6;
/// Version of the format of summary files. It must be increased if the content or encoding of [`Facts`] (the stored
/// evidence about a dump) changes, or if [`VERSION`] is increased.
pub(crate) const FILE_VERSION: u32 = 7;
/// Version of the format of summary files without [`Facts`]. Such a file can replace any dump of a comparison except
/// the last dump.
const FILE_VERSION_WITHOUT_FACTS: u32 = 6;
/// Maximum size of a cached summary, in bytes.
const MOST: u64 = 64 << 20;
/// A cached summary may have at most 1/`PART` of the size of its dump.
const PART: u64 = 8;
/// Maximum size, in bytes, of a summary file that is written at the user's request. It is higher than the maximum for a
/// cached summary.
const MOST_ALONE: u64 = 1 << 30;
/// Each number of objects or bytes in a file must be below this limit (2^42), so that sums cannot overflow.
const LARGEST: u64 = 1 << 42;

impl Summary {
    /// Returns the bytes of the cache file from which [`Summary::from_kept`] reads this summary of a dump. Returns
    /// `None` if the dump came from a pipe or is not the first of its file, or if the file would be larger than an
    /// eighth of the dump or 64 MiB. A file is that large if the dump has the allocation site of each object.
    ///
    /// Cost: one visit to each trie node and each sample.
    #[must_use]
    pub fn to_kept(&self, snapshot: &Snapshot) -> Option<Vec<u8>> {
        let of = cache_kind(Some(snapshot.file_stamp()?), snapshot.refs());
        let most = MOST.min(snapshot.source().len() as u64 / PART);
        if self.allocated.as_ref().map_or(0, Attribution::least_bytes) > most {
            return None;
        }
        let content = self.encoded(snapshot.object_count());
        // Do not write a file if a figure is too large for the reader, because reading the file would fail.
        Self::decoded(&content, None)?;
        let file = of.file(&content);
        (file.len() as u64 <= most).then_some(file)
    }

    /// Returns the bytes of a file that can replace the dump in comparisons. [`Summary::from_file`] reads the file.
    /// Returns `None` if the file would be larger than 1 GiB.
    ///
    /// Cost: one visit to each trie node and each sample. Then reads at most some thousand objects for each of at most
    /// 1,024 trie nodes.
    #[must_use]
    pub fn to_file(&self, snapshot: &Snapshot) -> Option<Vec<u8>> {
        let content = self.encoded_with_facts(snapshot);
        // Do not write a file if a figure is too large for the reader, because reading the file would fail.
        Self::decoded_with_facts(&content)?;
        let file = file_kind(FILE_VERSION, snapshot.refs()).file(&content);
        (file.len() as u64 <= MOST_ALONE).then_some(file)
    }

    /// Returns the bytes of a summary file without the evidence that a comparison reads from its last dump. So the file
    /// can replace any dump of a comparison except the last dump. [`Summary::from_file`] reads the file.
    ///
    /// Cost: one visit to each trie node and each sample.
    #[must_use]
    pub fn to_baseline(&self, snapshot: &Snapshot) -> Option<Vec<u8>> {
        let content = self.encoded(snapshot.object_count());
        Self::decoded(&content, None)?;
        let file = file_kind(FILE_VERSION_WITHOUT_FACTS, snapshot.refs()).file(&content);
        (file.len() as u64 <= MOST_ALONE).then_some(file)
    }

    /// True if a file is a summary rather than a dump.
    #[must_use]
    pub fn is_file(path: &Path) -> bool {
        Kept::has_magic(path)
    }

    /// Reads a file that [`Summary::to_file`] or [`Summary::to_baseline`] made. `path` is the name that the report
    /// gives the dump.
    ///
    /// # Errors
    /// Returns an error if the file has another version or kind of [`Refs`], is damaged, or cannot be read. Also
    /// returns an error if `options` has a ProGuard mapping, but the names in the file were not mapped.
    pub fn from_file(file: &Path, options: &Options, path: String) -> Result<Self, IndexFault> {
        let is_old = Kept::version(file) == Some(FILE_VERSION_WITHOUT_FACTS);
        let summary = if is_old {
            let kind = file_kind(FILE_VERSION_WITHOUT_FACTS, options.refs);
            Self::decoded(&kind.read(file, MOST_ALONE)?, None)
        } else {
            let kind = file_kind(FILE_VERSION, options.refs);
            Self::decoded_with_facts(&kind.read(file, MOST_ALONE)?)
        };
        let mut summary = summary.ok_or(IndexFault::Damaged(
            "the parts of the file contradict each other",
        ))?;
        match (summary.names, &options.mapping) {
            (None, Some(_)) => {
                return Err(IndexFault::Other("the file was written without --mapping"));
            }
            (Some(names), Some(mapping)) if names.fits && names.hash == mapping.hash() => {
                mapping.set_used();
            }
            _ => {}
        }
        summary.info.path = path;
        Ok(summary)
    }

    /// Reads the cached summary of the dump `dump` from `file`. `path` is the name that the report gives the dump.
    /// `of` is the open dump, or `None` if it is not open.
    ///
    /// Cost: reads the file, and both ends of the dump.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or cannot be read. Also returns an error if the file was written for
    /// another dump, version, mapping or kind of [`Refs`].
    pub fn from_kept(
        dump: &Path,
        file: &Path,
        options: &Options,
        path: String,
        of: Option<&Snapshot>,
    ) -> Result<Self, IndexFault> {
        let stamp = FileStamp::read(dump)?.ok_or(IndexFault::NoFile)?;
        if of.is_some_and(|of| of.file_stamp() != Some(stamp)) {
            return Err(IndexFault::Stale);
        }
        let content = cache_kind(Some(stamp), options.refs).read(file, MOST)?;
        let objects = of.map(Snapshot::object_count);
        let mut summary = Self::decoded(&content, objects).ok_or(IndexFault::Damaged(
            "the parts of the file contradict each other",
        ))?;
        if summary.names.map(|names| names.hash)
            != options.mapping.as_ref().map(|names| names.hash())
        {
            return Err(IndexFault::Other(
                "the file was written with another --mapping file, or without one",
            ));
        }
        if let (Some(Names { fits: true, .. }), Some(mapping)) = (summary.names, &options.mapping) {
            mapping.set_used();
        }
        summary.info.path = path;
        Ok(summary)
    }

    pub(crate) fn encoded(&self, objects: u64) -> Vec<u8> {
        let mut e = Encoder::default();
        e.u64(objects);
        info(&mut e, &self.info);
        e.u64(self.classes.len() as u64);
        for ((name, loader), figures) in &self.classes {
            e.text(name);
            e.option(loader.as_ref(), |e, loader| e.text(loader));
            e.u64(figures.reachable.objects);
            e.u64(figures.reachable.bytes);
            e.u64(figures.retained_bytes);
        }
        self.trie.encode(&mut e);
        e.option(self.allocated.as_ref(), |e, a| a.encode(e));
        e.u64(self.stats.classes);
        e.u64(self.stats.defined_by.len() as u64);
        for (name, &loaders) in &self.stats.defined_by {
            e.text(name);
            e.u64(loaders);
        }
        e.u64(self.stats.off_heap.len() as u64);
        for (step, off_heap) in &self.stats.off_heap {
            e.u32(step.0);
            e.u64(off_heap.buffers);
            e.u64(off_heap.bytes);
        }
        self.origin.encode(&mut e);
        e.option(self.names.as_ref(), |e, names| {
            e.u64(names.hash);
            e.flag(names.fits);
        });
        e.0
    }

    /// Returns the content of a summary file: the encoded summary, the [`Facts`] about the open dump, and the saved
    /// recordings.
    pub(crate) fn encoded_with_facts(&self, snapshot: &Snapshot) -> Vec<u8> {
        let mut e = Encoder(self.encoded(snapshot.object_count()));
        let facts = Facts::gather(self, snapshot);
        e.option(facts.as_ref(), |e, facts| facts.encode(e));
        e.list(&self.recordings, |e, recording| {
            e.text(&recording.path);
            e.text(&recording.matched);
            e.u64(recording.evidence.len() as u64);
            e.0.extend_from_slice(&recording.evidence);
        });
        e.0
    }

    /// Decodes a summary that [`Summary::encoded`] wrote. `objects` is the number of objects of the dump, if known.
    pub(crate) fn decoded(content: &[u8], objects: Option<u64>) -> Option<Self> {
        let d = &mut Decoder(content);
        Self::decode(d, objects).filter(|_| d.0.is_empty())
    }

    /// Decodes the content of a summary file.
    pub(crate) fn decoded_with_facts(content: &[u8]) -> Option<Self> {
        let d = &mut Decoder(content);
        let mut summary = Self::decode(d, None)?;
        summary.facts = d.option(|d| Facts::decode(d, summary.trie.len()))?;
        summary.recordings = d.list(|d| {
            let (path, matched) = (d.text()?, d.text()?);
            let length = d.usize()?;
            let (evidence, rest) = d.0.split_at_checked(length)?;
            d.0 = rest;
            Some(SavedRecording {
                path,
                matched,
                evidence: evidence.to_vec(),
            })
        })?;
        d.0.is_empty().then_some(summary)
    }

    fn decode(d: &mut Decoder<'_>, objects: Option<u64>) -> Option<Self> {
        let all = d.u64()?;
        if objects.is_some_and(|objects| objects != all) {
            return None;
        }
        let info = info_of(d)?;
        let classes: BTreeMap<ClassKey, ClassFigures> = d
            .list(|d| {
                let key = (d.text()?, d.option(Decoder::text)?);
                let reachable = Total {
                    objects: figure(d)?,
                    bytes: figure(d)?,
                };
                let retained_bytes = figure(d)?;
                Some((
                    key,
                    ClassFigures {
                        reachable,
                        retained_bytes,
                    },
                ))
            })?
            .into_iter()
            .collect();
        let trie = Trie::decode(d, all)?;
        let allocated = d.option(|d| Attribution::decode(d, &trie, all))?;
        let step = |d: &mut Decoder<'_>| d.u32().filter(|&s| (s as usize) < trie.len());
        let stats = DumpStats {
            classes: figure(d)?,
            defined_by: d
                .list(|d| Some((d.text()?, figure(d)?)))?
                .into_iter()
                .collect(),
            off_heap: d
                .list(|d| {
                    let step = StepId(step(d)?);
                    let buffers = figure(d)?;
                    let bytes = figure(d)?;
                    Some((step, OffHeap { buffers, bytes }))
                })?
                .into_iter()
                .collect(),
        };
        let origin = Origin::decode(d)?;
        let names = d.option(|d| {
            Some(Names {
                hash: d.u64()?,
                fits: d.flag()?,
            })
        })?;
        Some(Self {
            info,
            classes,
            trie,
            allocated,
            stats,
            origin,
            names,
            facts: None,
            recordings: Vec::new(),
        })
    }
}

const fn file_kind(version: u32, refs: Refs) -> Kept {
    Kept {
        stamp: None,
        refs,
        version,
    }
}

const fn cache_kind(stamp: Option<FileStamp>, refs: Refs) -> Kept {
    Kept {
        stamp,
        refs,
        version: VERSION,
    }
}

/// Reads a number of objects or bytes. Returns `None` if the number is too large.
pub(crate) fn figure(d: &mut Decoder<'_>) -> Option<u64> {
    d.u64().filter(|&figure| figure < LARGEST)
}

fn info(e: &mut Encoder, info: &SnapshotInfo) {
    e.u64(info.bytes);
    e.u64(info.taken_ms);
    e.u32(info.id_size);
    e.option(info.jvm.as_ref(), |e, jvm| e.text(jvm));
    let layout = &info.layout;
    for part in [
        layout.reference,
        layout.header,
        layout.array_header,
        layout.align,
    ] {
        e.u32(part);
    }
    e.text(&layout.source);
    for figure in [
        info.objects,
        info.reachable_objects,
        info.reachable_bytes,
        info.unreachable_bytes,
    ] {
        e.u64(figure);
    }
    e.flag(info.partial);
    e.list(&info.warnings, |e, warning| e.text(warning));
    e.option(info.assumed_roots.as_ref(), |e, roots| {
        e.text(&roots.kind);
        e.u64(roots.objects);
        e.u64(roots.retained_bytes);
    });
    e.option(info.agent.as_ref(), |e, agent| {
        for word in [
            agent.interval_bytes,
            agent.live_samples,
            agent.sites,
            agent.started_ms,
            agent.pid,
        ] {
            e.u64(word);
        }
    });
}

fn info_of(d: &mut Decoder<'_>) -> Option<SnapshotInfo> {
    Some(SnapshotInfo {
        path: String::new(),
        bytes: figure(d)?,
        taken_ms: d.u64()?,
        id_size: d.u32()?,
        jvm: d.option(Decoder::text)?,
        layout: LayoutInfo {
            reference: d.u32()?,
            header: d.u32()?,
            array_header: d.u32()?,
            align: d.u32()?,
            source: d.text()?.into(),
        },
        objects: figure(d)?,
        reachable_objects: figure(d)?,
        reachable_bytes: figure(d)?,
        unreachable_bytes: figure(d)?,
        partial: d.flag()?,
        warnings: d.list(Decoder::text)?,
        assumed_roots: d.option(|d| {
            Some(AssumedRoots {
                kind: d.text()?.into(),
                objects: figure(d)?,
                retained_bytes: figure(d)?,
            })
        })?,
        agent: d.option(|d| {
            Some(AgentInfo {
                interval_bytes: d.u64()?,
                live_samples: d.u64()?,
                sites: d.u64()?,
                started_ms: d.u64()?,
                pid: d.u64()?,
            })
        })?,
    })
}
