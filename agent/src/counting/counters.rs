//! Reads the counters of all sites. Objects that calls return are counted by pairs of call site and class. For each
//! pair, there is an allocation site with the position of the call site and the name of the class.

use heapdiff_sites::types::of_class;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::mark;
use super::returned::Pair;
use super::table::Resolved;
use super::{Engine, locked};
use crate::jvmti::calls::{Class, Env, Ref};

/// The name used for a class that was unloaded before its counters were read.
const UNLOADED: &str = "(an unloaded class)";
impl Engine {
    /// Returns the number of objects and the bytes at each site.
    pub(super) fn counters(&self, env: &Env<'_>) -> Vec<[u64; 2]> {
        let pairs = self.cells.returned.read();
        self.resolve(env, &pairs);
        let mut table = locked(&self.table);
        table.set_uncounted(self.cells.returned.uncounted_objects());
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

    /// Returns a class's JVM name. The name of a generated class, such as a lambda, contains a part that varies. This
    /// part is removed, so several generated classes share one name, although their objects may differ in size.
    /// Therefore, for a generated class, also returns the size of an object.
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
        if stable == name {
            (stable, None)
        } else {
            (stable, self.jvmti.instance_size(env, class))
        }
    }

    /// If a pair of call site and class has no allocation site yet, creates one.
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
        // Sort the pairs of call site and class, so that allocation sites are numbered in a stable order.
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
