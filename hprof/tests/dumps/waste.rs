//! Tests wasted memory. Heaps built by hand have every kind of waste. For random heaps, the waste is compared with
//! figures that are computed by definition.

use std::collections::{BTreeMap, BTreeSet};

use hprof::answers::{Hold, Waste, WasteKind, WasteOptions, WasteTotal};
use hprof::{ClassIndex, ObjectId, ObjectIndex, Options, Silent, Snapshot, Source};
use proptest::prelude::*;
use testdata::writer::{
    self, ClassId, Elements, FieldType, HeapBuilder, Obj, Ref, Root, StringForm, Value,
};

const ALL: usize = 1000;

fn open(heap: &HeapBuilder) -> Snapshot {
    let source = Source::from_bytes(heap.try_build().unwrap().bytes);
    Snapshot::of(source, &Options::default(), &Silent).unwrap()
}

fn waste(snapshot: &Snapshot, except: &[ObjectIndex]) -> Waste {
    let passes = |class: ClassIndex| snapshot.classes()[class].name.starts_with("java.");
    let options = WasteOptions {
        groups: ALL,
        except,
        passes: &passes,
    };
    snapshot.waste(&options, &Silent).unwrap()
}

/// The classes that the tests need.
struct World {
    heap: HeapBuilder,
    list: ClassId,
    integer: ClassId,
    long: ClassId,
}

impl World {
    fn new(options: writer::Options) -> Self {
        let mut heap = HeapBuilder::new(options);
        let object = heap.boot().object;
        let list = heap.add_class(
            "java.util.ArrayList",
            Some(object),
            &[("size", FieldType::Int), ("elementData", FieldType::Object)],
            &[],
        );
        let mut boxed = |name, kind| heap.add_class(name, Some(object), &[("value", kind)], &[]);
        let integer = boxed("java.lang.Integer", FieldType::Int);
        let long = boxed("java.lang.Long", FieldType::Long);
        // Add enough unreachable objects, so that the distances between objects reveal the object layout.
        for len in 0..100_u8 {
            let array = heap.add_primitive_array(Elements::Byte(vec![1; len.into()]));
            heap.add_instance(list, &[Value::Int(1), array.into()]);
            heap.add_instance(integer, &[Value::Int(len.into())]);
            heap.add_instance(long, &[Value::Long(len.into())]);
            heap.add_object_array(object, vec![Ref::Object(array); len.into()]);
        }
        Self {
            heap,
            list,
            integer,
            long,
        }
    }

    /// Adds a string that uses an existing array.
    fn string_of(&mut self, array: Obj, coder: i8) -> Obj {
        let string = self.heap.boot().string;
        match self.heap.options().strings {
            StringForm::Bytes => self
                .heap
                .add_instance(string, &[array.into(), Value::Byte(coder)]),
            StringForm::Chars => self.heap.add_instance(string, &[array.into()]),
        }
    }

    fn list_of(&mut self, size: i32, array: Ref) -> Obj {
        let values = [Value::Int(size), Value::Ref(array)];
        self.heap.add_instance(self.list, &values)
    }

    fn root(&mut self, object: Obj) {
        self.heap
            .add_root(Root::JniGlobal { global_ref: 0 }, object);
    }

    fn size(&self, object: Obj) -> u64 {
        self.heap.shallow_size(object)
    }
}

fn total(objects: u64, shallow_bytes: u64, bytes_to_win: u64) -> WasteTotal {
    WasteTotal {
        objects,
        shallow_bytes,
        bytes_to_win,
    }
}

#[test]
fn an_array_shared_by_equal_strings_counts_once() {
    for strings in [StringForm::Bytes, StringForm::Chars] {
        let mut world = World::new(writer::Options {
            strings,
            ..writer::Options::default()
        });
        let mut same: Vec<Obj> = (0..3)
            .map(|_| world.heap.add_string("twice told"))
            .collect();
        let other = world.heap.add_string("told once");
        // The fourth and the fifth string refer to the same array.
        let array = match strings {
            StringForm::Bytes => Elements::Byte(b"twice told".to_vec()),
            StringForm::Chars => Elements::Char("twice told".encode_utf16().collect()),
        };
        let array = world.heap.add_primitive_array(array);
        same.extend([world.string_of(array, 0), world.string_of(array, 0)]);
        // An unreachable string.
        world.heap.add_string("twice told");
        same.iter().chain([&other]).for_each(|&s| world.root(s));
        let (string, array) = (world.size(other), world.size(array));
        let snapshot = open(&world.heap);
        let found = waste(&snapshot, &[]);
        let of = found.of(WasteKind::DuplicateStrings);
        assert_eq!(
            of.total,
            total(5, 5 * string + 4 * array, 4 * string + 3 * array)
        );
        assert_eq!(of.groups, 1);
        assert_eq!(of.largest.len(), 1);
        assert_eq!(of.largest[0].total, of.total);
        assert_eq!(
            found.of(WasteKind::DuplicateArrays).total,
            WasteTotal::default()
        );
        // Excluded objects are not counted as waste.
        let left: Vec<ObjectIndex> = same[1..]
            .iter()
            .map(|&s| snapshot.find(ObjectId(world.heap.address(s))).unwrap())
            .collect();
        assert_eq!(
            waste(&snapshot, &left)
                .of(WasteKind::DuplicateStrings)
                .total
                .objects,
            0
        );
    }
}

#[test]
fn the_same_bytes_may_be_two_different_strings() {
    let mut world = World::new(writer::Options::default());
    let bytes = || Elements::Byte(vec![0x61, 0, 0x62, 0]);
    let [narrow, wide] = [0, 1].map(|coder| {
        let array = world.heap.add_primitive_array(bytes());
        world.string_of(array, coder)
    });
    world.root(narrow);
    world.root(wide);
    let found = waste(&open(&world.heap), &[]);
    assert_eq!(found.of(WasteKind::DuplicateStrings).total.objects, 0);
}

#[test]
fn holders_are_application_fields() {
    let mut world = World::new(writer::Options::default());
    let object = world.heap.boot().object;
    let name = [("name", FieldType::Object), ("tags", FieldType::Object)];
    let user = world
        .heap
        .add_class("com.acme.User", Some(object), &name, &[]);
    for _ in 0..10 {
        let name = world.heap.add_string("Ada");
        let tag = world.heap.add_string("Ada");
        let array = world.heap.add_object_array(object, [Ref::from(tag)]);
        let tags = world.list_of(1, array.into());
        let user = world.heap.add_instance(user, &[name.into(), tags.into()]);
        world.root(user);
    }
    let snapshot = open(&world.heap);
    let found = waste(&snapshot, &[]);
    let of = found.of(WasteKind::DuplicateStrings);
    let user = snapshot.classes().by_name("com.acme.User")[0];
    // The first of the equal strings is a name, and it is kept. So nine names and ten tags are waste.
    let mut holders: Vec<(Hold, u64)> = of.holders.iter().map(|h| (h.hold, h.objects)).collect();
    holders.sort_unstable();
    assert_eq!(
        holders,
        [(Hold::Field(user, 0), 9), (Hold::Field(user, 1), 10)]
    );
    assert!(of.holders.iter().all(|h| h.class == Some(user)));
    let sum: u64 = of.holders.iter().map(|h| h.bytes_to_win).sum();
    assert_eq!(sum, of.total.bytes_to_win);
}

#[test]
fn damaged_collections_are_skipped() {
    let mut world = World::new(writer::Options::default());
    let object = world.heap.boot().object;
    let array = world.heap.add_object_array(object, [Ref::Null; 20]);
    let lists = [
        world.list_of(-1, array.into()),
        world.list_of(i32::MAX, array.into()),
        world.list_of(3, Ref::Address(0x1234_5678)),
        world.list_of(3, Ref::Class(object)),
        world.list_of(3, Ref::Null),
    ];
    lists.iter().for_each(|&l| world.root(l));
    let found = waste(&open(&world.heap), &[]);
    for kind in [WasteKind::EmptyCollections, WasteKind::SparseCollections] {
        assert_eq!(found.of(kind).total, WasteTotal::default());
    }
}

/// An object of a random heap.
#[derive(Clone, Debug)]
enum Thing {
    /// A string. The boolean is true if it shares the array of an earlier equal string.
    Text(u8, bool),
    /// An array. The number selects the content. The boolean is true for a byte array.
    Array(u8, bool),
    Integer(u8),
    Long(u8),
    /// Size and capacity of a list.
    List(u8, u8),
    /// Length of a byte array, and the number of bytes that are not zero.
    Room(u8, u8),
    /// Length of an object array, and the number of references that are not null.
    Nulls(u8, u8),
}

fn thing() -> impl Strategy<Value = (Thing, bool)> {
    let thing = prop_oneof![
        (0..6_u8, any::<bool>()).prop_map(|(t, s)| Thing::Text(t, s)),
        (0..6_u8, any::<bool>()).prop_map(|(c, b)| Thing::Array(c, b)),
        (0..5_u8).prop_map(Thing::Integer),
        (0..5_u8).prop_map(Thing::Long),
        (0..20_u8, 0..40_u8).prop_map(|(s, c)| Thing::List(s, c)),
        (0..120_u8, 0..120_u8).prop_map(|(l, u)| Thing::Room(l, u)),
        (0..60_u8, 0..60_u8).prop_map(|(l, u)| Thing::Nulls(l, u)),
    ];
    (thing, prop::bool::weighted(0.9))
}

/// Returns the size of an array of `len` elements in the writer's default layout.
fn array_bytes(len: u64, width: u64) -> u64 {
    (16 + len * width).next_multiple_of(8)
}

/// The expected waste. It is computed from the objects that the test created, without reading the dump.
#[derive(Default)]
struct Expected(BTreeMap<&'static str, WasteTotal>);

impl Expected {
    fn add(&mut self, kind: WasteKind, more: WasteTotal) {
        *self.0.entry(kind.name()).or_default() += more;
    }

    /// Adds groups of equal objects. `groups` has the sizes of the objects in each group. All but one object of each
    /// group are waste.
    fn equal<K: Ord>(&mut self, kind: WasteKind, groups: &BTreeMap<K, Vec<u64>>) {
        for group in groups.values().filter(|g| g.len() > 1) {
            let all: u64 = group.iter().sum();
            self.add(kind, total(group.len() as u64, all, all - group[0]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn waste_matches_its_definitions(things in prop::collection::vec(thing(), 0..120)) {
        let mut world = World::new(writer::Options::default());
        let object = world.heap.boot().object;
        let element = world.heap.add_instance(object, &[]);
        world.root(element);
        let mut expected = Expected::default();
        let mut arrays_of: BTreeMap<u8, Obj> = BTreeMap::new();
        // For each text: the number of strings, and their distinct arrays.
        let mut texts: BTreeMap<u8, (u64, BTreeSet<Obj>)> = BTreeMap::new();
        let mut contents: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        let mut long: Vec<(Vec<u8>, u64, u64)> = Vec::new();
        let (mut integers, mut longs) = (BTreeMap::<u8, Vec<u64>>::new(), BTreeMap::<u8, Vec<u64>>::new());
        for (thing, reachable) in things {
            let made = match thing {
                Thing::Text(text, shares) => {
                    let bytes = vec![text + 65; usize::from(text) * 3];
                    let array = match arrays_of.get(&text) {
                        Some(&array) if shares => array,
                        _ => world.heap.add_primitive_array(Elements::Byte(bytes)),
                    };
                    if reachable {
                        arrays_of.insert(text, array);
                        let group = texts.entry(text).or_default();
                        group.0 += 1;
                        group.1.insert(array);
                    }
                    world.string_of(array, 0)
                }
                Thing::Array(content, bytes) => {
                    let elements = if bytes {
                        Elements::Byte(vec![content + 1; 40])
                    } else {
                        Elements::Int(vec![i32::from(content) + 1; 10])
                    };
                    let array = world.heap.add_primitive_array(elements);
                    if reachable {
                        let size = world.size(array);
                        contents.entry(vec![u8::from(bytes), content]).or_default().push(size);
                    }
                    array
                }
                Thing::Integer(value) => {
                    let made = world.heap.add_instance(world.integer, &[Value::Int(i32::from(value))]);
                    if reachable {
                        integers.entry(value).or_default().push(world.size(made));
                    }
                    made
                }
                Thing::Long(value) => {
                    let made = world.heap.add_instance(world.long, &[Value::Long(i64::from(value))]);
                    if reachable {
                        longs.entry(value).or_default().push(world.size(made));
                    }
                    made
                }
                Thing::List(size, capacity) => {
                    let size = size.min(capacity);
                    let places = (0..capacity).map(|i| if i < size { element.into() } else { Ref::Null });
                    let array = world.heap.add_object_array(object, places);
                    let list = world.list_of(i32::from(size), array.into());
                    let bytes = world.size(list) + if capacity > 0 { world.size(array) } else { 0 };
                    let (size, capacity) = (u64::from(size), u64::from(capacity));
                    let win = array_bytes(capacity, 4) - array_bytes(size, 4);
                    if reachable && size == 0 {
                        expected.add(WasteKind::EmptyCollections, total(1, bytes, bytes));
                    } else if reachable && size <= capacity / 2 && win > 0 {
                        expected.add(WasteKind::SparseCollections, total(1, bytes, win));
                    }
                    list
                }
                Thing::Room(len, used) => {
                    let used = used.min(len);
                    let bytes: Vec<u8> = (0..len).map(|i| u8::from(i < used) * 200).collect();
                    let array = world.heap.add_primitive_array(Elements::Byte(bytes.clone()));
                    let (size, win) = (world.size(array), array_bytes(len.into(), 1) - array_bytes(used.into(), 1));
                    if reachable && used == 0 && len >= 32 {
                        expected.add(WasteKind::ZeroArrays, total(1, size, size));
                    } else if reachable {
                        let key = [vec![9], bytes].concat();
                        contents.entry(key.clone()).or_default().push(size);
                        if used <= len / 2 && len - used >= 32 {
                            long.push((key, size, win));
                        }
                    }
                    array
                }
                Thing::Nulls(len, used) => {
                    let used = used.min(len);
                    let places = (0..len).map(|i| if i < used { element.into() } else { Ref::Null });
                    let array = world.heap.add_object_array(object, places);
                    let (size, win) = (world.size(array), array_bytes(len.into(), 4) - array_bytes(used.into(), 4));
                    if reachable && used <= len / 2 && u64::from(len - used) * 4 >= 32 {
                        match used {
                            0 => expected.add(WasteKind::ZeroArrays, total(1, size, size)),
                            _ if win > 0 => expected.add(WasteKind::LongArrays, total(1, size, win)),
                            _ => {}
                        }
                    }
                    array
                }
            };
            if reachable {
                world.root(made);
            }
        }
        expected.equal(WasteKind::DuplicateArrays, &contents);
        expected.equal(WasteKind::DuplicateBoxes, &integers);
        expected.equal(WasteKind::DuplicateBoxes, &longs);
        for (key, size, win) in long {
            if contents[&key].len() == 1 && win > 0 {
                expected.add(WasteKind::LongArrays, total(1, size, win));
            }
        }
        for (text, (strings, arrays)) in texts {
            if strings > 1 {
                let array = array_bytes(u64::from(text) * 3, 1);
                let string = 24;
                let (all, arrays) = (strings * string, arrays.len() as u64);
                let win = all - string + (arrays - 1) * array;
                expected.add(WasteKind::DuplicateStrings, total(strings, all + arrays * array, win));
            }
        }
        let found = waste(&open(&world.heap), &[]);
        for (kind, of) in found.iter() {
            let wanted = expected.0.get(kind.name()).copied().unwrap_or_default();
            prop_assert_eq!(of.total, wanted, "{}", kind.name());
            let groups = of.largest.iter().map(|g| g.total.bytes_to_win).sum::<u64>();
            prop_assert_eq!(groups, wanted.bytes_to_win);
            let holders = of.holders.iter().map(|h| h.bytes_to_win).sum::<u64>();
            prop_assert_eq!(holders, wanted.bytes_to_win);
        }
    }
}
