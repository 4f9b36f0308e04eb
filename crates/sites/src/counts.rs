//! The binary format in which the agent returns counted allocations.
//!
//! ```text
//! counts := "HDCOUNT1" millis classes flags uncounted left_alone refused names names sites "END"
//! names  := count text*                       methods without counters; then classes without counters
//! sites  := count site*
//! site   := class method line allocated objects bytes
//! text   := length bytes                      UTF-8
//! ```
//!
//! All numbers are unsigned LEB128. `line` is 0 if unknown. `bytes` is 0 if unknown, otherwise the number of bytes plus
//! 1. Flag 1 means that JDK classes were counted, too.

const START: &[u8] = b"HDCOUNT1";
const END: &[u8] = b"END";

/// Maximum number of names in each of the two lists: methods and classes without counters.
pub const MOST_NAMES: usize = 20;

/// An allocation site with its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedSite {
    /// The class that contains the code, as in Java source.
    pub class: String,
    /// The method.
    pub method: String,
    /// The line of code, if the class file has line numbers.
    pub line: Option<u32>,
    /// The allocated class, as in Java source.
    pub allocated: String,
    /// Number of allocations.
    pub objects: u64,
    /// Bytes of the allocations; `None` if the JVM did not report the size of an object.
    pub bytes: Option<u64>,
}

/// The counts of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Length of the period in milliseconds.
    pub millis: u64,
    /// Number of classes into which the agent inserted counters. A class that is loaded several times counts several
    /// times.
    pub classes: u64,
    /// True if JDK classes were counted, too.
    pub jdk: bool,
    /// Number of allocation sites that were not counted because no counter was left.
    pub uncounted: u64,
    /// Number of methods into which the agent could not insert counters.
    pub left_alone: u64,
    /// Number of classes into which the agent could not insert counters, or whose changed version the JVM rejected.
    pub refused: u64,
    /// Names of the first methods into which the agent could not insert counters.
    pub left_alone_names: Vec<String>,
    /// Names of the first classes into which the agent could not insert counters.
    pub refused_names: Vec<String>,
    /// Sites with at least one allocation.
    pub sites: Vec<CountedSite>,
}

impl Counts {
    /// Encodes the counts.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = START.to_vec();
        let head = [
            self.millis,
            self.classes,
            self.jdk.into(),
            self.uncounted,
            self.left_alone,
            self.refused,
        ];
        head.into_iter().for_each(|n| number(&mut out, n));
        for names in [&self.left_alone_names, &self.refused_names] {
            number(&mut out, names.len() as u64);
            names.iter().for_each(|name| text(&mut out, name));
        }
        number(&mut out, self.sites.len() as u64);
        for site in &self.sites {
            text(&mut out, &site.class);
            text(&mut out, &site.method);
            number(&mut out, site.line.unwrap_or(0).into());
            text(&mut out, &site.allocated);
            number(&mut out, site.objects);
            number(&mut out, site.bytes.map_or(0, |b| b.saturating_add(1)));
        }
        out.extend(END);
        out
    }

    /// Decodes counts written by [`Self::encode`]. Returns `None` for any other bytes.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes.strip_prefix(START)?);
        let mut counts = Self {
            millis: rest.number()?,
            classes: rest.number()?,
            jdk: rest.number()? & 1 != 0,
            uncounted: rest.number()?,
            left_alone: rest.number()?,
            refused: rest.number()?,
            ..Self::default()
        };
        for names in [&mut counts.left_alone_names, &mut counts.refused_names] {
            for _ in 0..rest.number()? {
                names.push(rest.text()?);
            }
        }
        for _ in 0..rest.number()? {
            counts.sites.push(CountedSite {
                class: rest.text()?,
                method: rest.text()?,
                line: match u32::try_from(rest.number()?).ok()? {
                    0 => None,
                    line => Some(line),
                },
                allocated: rest.text()?,
                objects: rest.number()?,
                bytes: rest.number()?.checked_sub(1),
            });
        }
        (rest.0 == END).then_some(counts)
    }
}

fn number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// The bytes that have not been read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn example() -> Counts {
        let site = |line, bytes| CountedSite {
            class: "com.acme.Größe".to_owned(),
            method: "<init>".to_owned(),
            line,
            allocated: "byte[][]".to_owned(),
            objects: u64::MAX,
            bytes,
        };
        Counts {
            millis: 30_000,
            classes: 12,
            jdk: true,
            uncounted: 3,
            left_alone: 1,
            refused: 0,
            left_alone_names: vec!["com.acme.Long.method".to_owned()],
            refused_names: Vec::new(),
            sites: vec![site(Some(17), Some(0)), site(None, None)],
        }
    }

    #[test]
    fn written_counts_are_read_back() {
        for counts in [Counts::default(), example()] {
            assert_eq!(Counts::decode(&counts.encode()), Some(counts));
        }
    }

    /// Truncated bytes are rejected. Damaged bytes are decoded or rejected, without a panic.
    #[test]
    fn damage_is_refused() {
        let whole = example().encode();
        for cut in 0..whole.len() {
            assert_eq!(Counts::decode(&whole[..cut]), None, "{cut}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = Counts::decode(&damaged);
            }
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(Counts::decode(&longer), None);
    }

    fn any_site() -> impl Strategy<Value = CountedSite> {
        let line = option::of(1..=u32::MAX);
        let bytes = option::of(0..u64::MAX);
        (".{0,9}", ".{0,9}", line, ".{0,9}", any::<u64>(), bytes).prop_map(
            |(class, method, line, allocated, objects, bytes)| CountedSite {
                class,
                method,
                line,
                allocated,
                objects,
                bytes,
            },
        )
    }

    fn any_counts() -> impl Strategy<Value = Counts> {
        let names = || vec(".{0,9}", 0..4);
        let lost = any::<(u64, u64, u64)>();
        let head = (any::<u64>(), any::<u64>(), any::<bool>(), lost);
        (head, names(), names(), vec(any_site(), 0..5)).prop_map(
            |((millis, classes, jdk, lost), left_alone_names, refused_names, sites)| Counts {
                millis,
                classes,
                jdk,
                uncounted: lost.0,
                left_alone: lost.1,
                refused: lost.2,
                left_alone_names,
                refused_names,
                sites,
            },
        )
    }

    proptest! {
        #[test]
        fn any_counts_are_read_as_written(counts in any_counts()) {
            prop_assert_eq!(Counts::decode(&counts.encode()), Some(counts));
        }

        /// If damaged bytes can be decoded, encoding and decoding the result gives the same result. Decoding takes
        /// memory in proportion to the number of bytes.
        #[test]
        fn damaged_counts_are_refused_or_read_consistently(
            counts in any_counts(),
            damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = counts.encode();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            assert_read_alike(&bytes)?;
        }

        #[test]
        fn any_bytes_are_refused_or_read_consistently(bytes in vec(any::<u8>(), 0..99)) {
            let numbers = [START, &bytes, END].concat();
            assert_read_alike(&numbers)?;
            // In random bytes with small values, the decoder gets further before it fails.
            let small: Vec<u8> = bytes.iter().map(|byte| byte % 3).collect();
            assert_read_alike(&[START, &small, END].concat())?;
        }
    }

    fn assert_read_alike(bytes: &[u8]) -> Result<(), TestCaseError> {
        if let Some(read) = Counts::decode(bytes) {
            let names = read.left_alone_names.len() + read.refused_names.len();
            prop_assert!(names + read.sites.len() <= bytes.len());
            prop_assert_eq!(Counts::decode(&read.encode()), Some(read));
        }
        Ok(())
    }
}
