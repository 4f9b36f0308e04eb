//! What calls returned, counted by site and class: only the run tells the class.
//!
//! For each stripe of threads there is an open table outside of the Java heap. Its keys are a site's number and a class's: where the JVM
//! has what it knows of the class, an address that no other class has that is loaded. (Identity hashes will not do: JDK 17 gives the
//! classes that it loads those that classes in its archive have already.) When counters are read each pair becomes a site of its own,
//! with the class's name.

use heapdiff_sites::types::of_class;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::mark;
use super::cells::{MOST_SITES, STRIPES};
use super::table::Resolved;
use super::{Engine, locked};
use crate::jvmti::calls::{Class, Env, Ref};
use crate::jvmti::counting::Shared;

/// Pairs at most in a stripe, as a power of two. What is beyond is not counted, and told.
pub(crate) const BITS: u32 = 14;
/// Bytes of an entry, as a power of two: its key, objects, bytes of arrays, and one that is not used.
pub(crate) const ENTRY_BITS: u8 = 5;
const ENTRY: usize = 1 << ENTRY_BITS;
/// From a stripe's start to the next, not a power of two either.
pub(crate) const STRIPE_BYTES: i64 = ((ENTRY << BITS) + 4096 + 64) as i64;

/// The name of a class that was unloaded before its counters were read.
const UNLOADED: &str = "(an unloaded class)";
/// The bits of a key that are the site's.
pub(crate) const SITE_BITS: u8 = 16;
/// A key's part that is the site's.
const SITES: u64 = (1 << SITE_BITS) - 1;
const _: () = assert!(MOST_SITES == 1 << SITE_BITS);

/// A site's number, and that of the class of what it returned.
pub(crate) type Pair = (u32, u64);

/// The tables.
pub(crate) struct Returned(Shared);

impl Returned {
    /// All of them, empty; `None` if there is no memory.
    pub(super) fn new() -> Option<Self> {
        // Behind them are two counters of what found no room.
        let bytes = usize::try_from(STRIPES * STRIPE_BYTES).ok()? + ENTRY;
        Shared::new(bytes / 8).map(Self)
    }

    /// Where they are.
    pub(crate) fn start(&self) -> i64 {
        self.0.address()
    }

    /// What was counted of each pair: objects, and bytes of arrays.
    fn read(&self) -> FxHashMap<Pair, [u64; 2]> {
        let stripe = usize::try_from(STRIPE_BYTES).unwrap_or(0) / 8;
        let mut pairs: FxHashMap<Pair, [u64; 2]> = FxHashMap::default();
        for start in (0..usize::try_from(STRIPES).unwrap_or(0)).map(|i| i * stripe) {
            for at in (start..).step_by(ENTRY / 8).take(1 << BITS) {
                let key = self.0.get(at);
                if key != 0 {
                    let pair = ((key & SITES) as u32, key >> SITE_BITS);
                    let sum = pairs.entry(pair).or_default();
                    *sum = [0, 1].map(|i| sum[i].wrapping_add(self.0.get(at + 1 + i)));
                }
            }
        }
        pairs
    }

    /// How many found no room.
    fn lost(&self) -> u64 {
        let end = usize::try_from(STRIPES * STRIPE_BYTES).unwrap_or(0) / 8;
        self.0.get(end)
    }
}

impl Engine {
    /// What every site has counted.
    pub(super) fn counters(&self, env: &Env<'_>) -> Vec<[u64; 2]> {
        let pairs = self.cells.returned.read();
        self.resolve(env, &pairs);
        let mut table = locked(&self.table);
        table.tell_lost(self.cells.returned.lost());
        let mut counters = self.cells.read(table.len());
        for (pair, [objects, bytes]) in pairs {
            let Some(resolved) = table.resolved.get(&pair) else {
                continue;
            };
            let place = resolved
                .site
                .and_then(|site| counters.get_mut(site as usize));
            if let Some(sum) = place {
                let each = resolved.size.unwrap_or(0);
                sum[0] = sum[0].wrapping_add(objects);
                sum[1] = sum[1].wrapping_add(bytes.wrapping_add(each.wrapping_mul(objects)));
            }
        }
        counters
    }

    /// A class's name within the JVM, and the bytes of its objects where its name is not its own alone: of a class that was made as the
    /// program ran.
    fn named(
        &self,
        env: &Env<'_>,
        signature: &str,
        class: Ref<'_, Class>,
    ) -> (String, Option<u64>) {
        let name = signature
            .strip_prefix('L')
            .and_then(|s| s.strip_suffix(';'));
        let Some(name) = name else {
            return (signature.to_owned(), None);
        };
        let stable = of_class(name).replace('.', "/");
        match stable == name {
            true => (stable, None),
            false => (stable, self.jvmti.instance_size(env, class)),
        }
    }

    /// Gives pairs that have none a site.
    fn resolve(&self, env: &Env<'_>, pairs: &FxHashMap<Pair, [u64; 2]>) {
        let mut unknown: Vec<Pair> = {
            let table = locked(&self.table);
            let unknown = pairs
                .keys()
                .filter(|pair| !table.resolved.contains_key(pair));
            unknown.copied().collect()
        };
        if unknown.is_empty() {
            return;
        }
        // In an order that does not change, which numbers of sites have then.
        unknown.sort_unstable();
        let numbers: FxHashSet<u64> = unknown.iter().map(|(_, class)| *class).collect();
        let Ok(classes) = self
            .jvmti
            .by_number(env, |number| numbers.contains(&number))
        else {
            return;
        };
        let found: FxHashMap<u64, _> = classes
            .into_iter()
            .map(|(number, signature, class)| (number, (signature, class)))
            .collect();
        for (site, number) in unknown {
            let of = pairs.get(&(site, number));
            let is_array = of.is_some_and(|[_, bytes]| *bytes > 0);
            let mark = locked(&self.table).mark(site);
            let (name, size) = match found.get(&number) {
                None => (UNLOADED.to_owned(), None),
                Some((signature, class)) => {
                    let class = class.get();
                    if mark == Some(mark::UNLESS_OVERRIDDEN) && self.jvmti.has_own_clone(env, class)
                    {
                        let none = Resolved::default();
                        locked(&self.table).resolved.insert((site, number), none);
                        continue;
                    }
                    self.named(env, signature, class)
                }
            };
            let mut table = locked(&self.table);
            let is_object = !is_array && size.is_none();
            table.resolve((site, number), &name, is_object, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_all_stripes_are_added() {
        let returned = Returned::new().unwrap();
        assert!(returned.read().is_empty() && returned.lost() == 0);
        assert_eq!(returned.start() % 64, 0);
    }
}
