//! Threads that get their serial numbers while the child writes: virtual threads, and threads started after the fork
//! was prepared.
//!
//! When the heap walk comes to a virtual thread, it reports the objects on the thread's stack frame by frame. It
//! reports only frames that hold objects. Therefore complete stacks are read before the fork, but only of some threads.
//!
//! - If the complete stack agrees with the frames of the heap walk, the dump gets the complete stack.
//! - If the thread has continued to run after its stack was read, the dump gets only the frames of the heap walk. The
//!   same applies if the stack was not read.

use std::collections::{BTreeMap, HashMap};

use super::image::{Gathered, NO_TRACE, frame, trace, width};

/// Values of `VirtualThread.state` for a thread that was not started, and for a thread that has ended.
const NOT_ALIVE: [i32; 2] = [0, 99];
/// Maximum number of innermost frames that the heap walk reports but that JVMTI leaves out of a stack. They are the
/// frames of the methods that unmount a virtual thread.
const HIDDEN: usize = 8;

/// A position in code: JVMTI's id of the method, and the bytecode index.
pub(crate) type Place = (usize, i64);

/// A method with its ids in the dump.
#[derive(Debug)]
pub(super) struct KnownMethod {
    /// Ids of the method's name, its signature and its source file.
    pub(super) names: [u64; 3],
    /// Serial number of the method's class.
    pub(super) class: u32,
    pub(super) is_native: bool,
    /// Line table: pairs of the bytecode index where a line begins and the line number.
    pub(super) lines: Box<[(i64, i32)]>,
}

/// Returns the line number at a bytecode index. HPROF uses -3 for native methods and -1 for unknown lines.
pub(crate) fn line_at(lines: &[(i64, i32)], location: i64) -> i32 {
    let after = lines.partition_point(|&(start, _)| start <= location);
    match (location < 0, after.checked_sub(1)) {
        (true, _) => -3,
        (_, Some(at)) => lines[at].1,
        _ => -1,
    }
}

/// The stacks of virtual threads, read before the fork, and the methods that occur in the stack of any thread.
#[derive(Debug, Default)]
pub(super) struct KnownStacks {
    /// Index in `stacks` of each thread's stack, by the thread's id.
    threads: HashMap<u64, usize>,
    stacks: Vec<Vec<Place>>,
    methods: HashMap<usize, KnownMethod>,
    /// The lowest frame id that is not used yet.
    next_frame: u64,
}

impl KnownStacks {
    pub(super) fn new(
        gathered: &Gathered,
        methods: HashMap<usize, KnownMethod>,
        next_frame: u64,
    ) -> Self {
        Self {
            threads: gathered.virtual_threads.iter().copied().collect(),
            stacks: gathered.stacks.clone(),
            methods,
            next_frame,
        }
    }

    /// True if the method is known and not native. A frame of such a method has no JNI references.
    pub(super) fn is_java(&self, method: usize) -> bool {
        self.methods
            .get(&method)
            .is_some_and(|known| !known.is_native)
    }

    /// Returns the stack that was read for the thread before the fork, and the number of innermost frames that JVMTI
    /// left out of this stack. Returns `None` if no stack was read. Also returns `None` if the stack does not agree
    /// with the frames that the heap walk reported, because the methods at the same depth differ.
    fn matching_stack(&self, thread: u64, reported: &Reported) -> Option<(&[Place], usize)> {
        let known = self.stacks.get(*self.threads.get(&thread)?)?;
        let agrees = |hidden: usize| {
            reported.iter().all(|(&depth, place)| {
                let visible = (depth as usize).checked_sub(hidden);
                visible.is_none_or(|at| known.get(at).is_some_and(|k| k.0 == place.0))
            })
        };
        // JVMTI may have left out innermost frames, so the depths of the other frames may be shifted. Try shifts up to
        // the depth of the deepest reported frame. With a larger shift, no reported frame would be compared, and any
        // stack would seem to agree.
        let last = reported
            .last_key_value()
            .map_or(0, |(&depth, _)| depth as usize);
        let hidden = (0..=HIDDEN.min(last)).find(|&hidden| agrees(hidden))?;
        Some((known, hidden))
    }
}

/// The frames that the heap walk reported for a thread, by depth.
type Reported = BTreeMap<u32, Place>;

/// Adds a frame at a depth. If `frames` already has a frame at this depth, the new frame replaces it only if the
/// bytecode index of the old frame is not known.
fn add(frames: &mut Reported, depth: u32, place: Place) {
    let known = frames.entry(depth).or_insert(place);
    if known.1 < 0 {
        *known = place;
    }
}

/// The position of the field with the thread's state in an instance of `VirtualThread`.
#[derive(Debug, Clone, Copy)]
pub(super) struct VirtualState {
    /// Class object of `java.lang.VirtualThread`.
    pub(super) class: u64,
    /// Offset of the field `state` in the field values of an instance.
    place: usize,
}

impl VirtualState {
    pub(super) fn from_gathered(gathered: &Gathered) -> Option<Self> {
        let mut classes = gathered.classes.iter();
        let class = classes.find(|class| class.signature == "Ljava/lang/VirtualThread;")?;
        // In an instance, the values of a class's own fields precede those of its superclasses.
        let mut instance = class.fields.iter().filter(|field| !field.is_static);
        let before = instance.clone().take_while(|field| field.name != "state");
        let place = before.map(|field| width(field.kind) as usize).sum();
        let has_state = instance.any(|field| field.name == "state");
        (gathered.reports_virtual_threads && has_state).then_some(Self {
            class: class.address,
            place,
        })
    }

    /// True if the thread with these field values was started and has not ended.
    pub(super) fn is_alive(self, values: &[u8]) -> bool {
        let state = values.get(self.place..).and_then(|rest| rest.first_chunk());
        state.is_some_and(|state| !NOT_ALIVE.contains(&i32::from_be_bytes(*state)))
    }
}

/// A thread that had no serial number before the fork.
struct Late {
    id: u64,
    /// The frames of the thread that hold objects, as the heap walk has reported them.
    reported: Reported,
}

/// Threads that had no serial number before the fork and that the heap walk finds. Their serial numbers start with
/// `first`.
pub(super) struct LateThreads {
    first: u32,
    threads: Vec<Late>,
    numbers: HashMap<u64, usize>,
    /// Id of the thread whose stack the heap walk is reporting.
    pub(super) current: u64,
}

/// The stack traces of all threads in a list of [`LateThreads`].
#[derive(Default)]
pub(super) struct Traces {
    /// The dump's records of these stack traces.
    pub(super) records: Vec<u8>,
    /// Pairs of a thread's id and its serial number.
    pub(super) threads: Vec<(u64, u32)>,
    /// For each thread, the depths of the frames that its trace contains, in ascending order. A trace may lack some
    /// frames of the thread's stack.
    depths: Vec<Vec<u32>>,
    /// Ids of frames, by the frame's method and line.
    frames: HashMap<(usize, i32), u64>,
}

impl Traces {
    /// Returns the id of a frame, or `None` if its method is not known. Writes the frame's record on first use.
    fn frame(&mut self, stacks: &KnownStacks, (method, location): Place) -> Option<u64> {
        let known = stacks.methods.get(&method)?;
        let line = if known.is_native {
            -3
        } else {
            line_at(&known.lines, location.max(0))
        };
        let next = stacks.next_frame + self.frames.len() as u64;
        let records = &mut self.records;
        let id = self.frames.entry((method, line)).or_insert_with(|| {
            frame(records, next, known.names, known.class, line);
            next
        });
        Some(*id)
    }
}

impl LateThreads {
    /// Creates an empty list. `known` is the number of threads that already have serial numbers. The serial numbers of
    /// this list continue after them.
    pub(super) fn new(known: usize) -> Self {
        Self {
            first: u32::try_from(known + 1).unwrap_or(u32::MAX),
            threads: Vec::new(),
            numbers: HashMap::new(),
            current: 0,
        }
    }

    /// Returns the thread's serial number. Assigns one if the thread has none.
    pub(super) fn serial(&mut self, id: u64) -> u32 {
        let at = *self.numbers.entry(id).or_insert_with(|| {
            self.threads.push(Late {
                id,
                reported: Reported::new(),
            });
            self.threads.len() - 1
        });
        self.first
            .saturating_add(u32::try_from(at).unwrap_or(u32::MAX))
    }

    fn number(&self, serial: u32) -> Option<usize> {
        Some(serial.checked_sub(self.first)? as usize)
    }

    /// Records a frame that the heap walk reported, if the serial number belongs to a thread in this list.
    pub(super) fn report(&mut self, serial: u32, depth: u32, place: Place) {
        let at = self.number(serial);
        if let Some(thread) = at.and_then(|at| self.threads.get_mut(at))
            && place.0 != 0
        {
            add(&mut thread.reported, depth, place);
        }
    }

    /// Returns the stack traces of all threads in this list.
    pub(super) fn traces(&self, stacks: &KnownStacks) -> Traces {
        let mut traces = Traces::default();
        // Frames that JVMTI leaves out of stacks. The key consists of the number of left-out frames and the depth of
        // the frame. Threads with the same number of left-out frames were unmounted by the same methods. So these
        // threads have the same left-out frames, and a frame that is known for one thread is used for all of them.
        let mut hidden: HashMap<(usize, u32), Place> = HashMap::new();
        for thread in &self.threads {
            if let Some((_, left_out)) = stacks.matching_stack(thread.id, &thread.reported) {
                let left_out_frames = thread.reported.range(..left_out as u32);
                for (&depth, &place) in left_out_frames.filter(|(_, place)| place.1 >= 0) {
                    hidden.entry((left_out, depth)).or_insert(place);
                }
            }
        }
        for (thread, serial) in self.threads.iter().zip(self.first..) {
            let mut places = thread.reported.clone();
            if let Some((known, left_out)) = stacks.matching_stack(thread.id, &thread.reported) {
                let above = (0..left_out as u32)
                    .filter_map(|depth| Some((depth, *hidden.get(&(left_out, depth))?)));
                let known = (left_out as u32..).zip(known.iter().copied());
                for (depth, place) in above.chain(known) {
                    add(&mut places, depth, place);
                }
            }
            let (mut depths, mut ids) = (Vec::new(), Vec::new());
            for (depth, place) in places {
                if let Some(id) = traces.frame(stacks, place) {
                    depths.push(depth);
                    ids.push(id);
                }
            }
            let number = serial.saturating_add(NO_TRACE);
            trace(&mut traces.records, number, serial, &ids);
            traces.threads.push((thread.id, serial));
            traces.depths.push(depths);
        }
        traces
    }

    /// Returns the index of a frame in its thread's trace. Returns `u32::MAX` (HPROF's "no frame") if the trace does
    /// not contain the frame. If a thread had a serial number before the fork, its trace contains all frames, so the
    /// depth of a frame is its index.
    pub(super) fn place(&self, traces: &Traces, serial: u32, depth: u32) -> u32 {
        match self.number(serial).and_then(|at| traces.depths.get(at)) {
            None => depth,
            Some(depths) => match depths.binary_search(&depth) {
                Ok(place) => u32::try_from(place).unwrap_or(u32::MAX),
                Err(_) => u32::MAX,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the methods 1 to 9, of which 9 is native, and the thread 100 with the stack `stack`.
    fn known(stack: &[Place]) -> KnownStacks {
        let method = |number: usize| KnownMethod {
            names: [number as u64; 3],
            class: 1,
            is_native: number == 9,
            lines: [(0, 10), (5, 20)].into(),
        };
        KnownStacks {
            threads: HashMap::from([(100, 0)]),
            stacks: vec![stack.to_vec()],
            methods: (1..10).map(|number| (number, method(number))).collect(),
            next_frame: 50,
        }
    }

    /// Returns the method and the line of each frame in a thread's trace. Also returns, for the depths 0 to 4, the
    /// index of the frame in the trace.
    fn trace_of(
        stacks: &KnownStacks,
        thread: u64,
        reported: &[(u32, Place)],
    ) -> (Vec<(usize, i32)>, Vec<u32>) {
        let mut late = LateThreads::new(3);
        let serial = late.serial(thread);
        assert_eq!((serial, late.serial(thread)), (4, 4));
        for &(depth, place) in reported {
            late.report(serial, depth, place);
        }
        let traces = late.traces(stacks);
        assert_eq!(traces.threads, [(thread, serial)]);
        let by_id: HashMap<u64, (usize, i32)> = traces
            .frames
            .iter()
            .map(|(&frame, &id)| (id, frame))
            .collect();
        // The last record is the thread's stack trace. It ends with the ids of the frames.
        let count = traces.depths[0].len();
        let ids = &traces.records[traces.records.len() - 8 * count..];
        let ids = ids
            .chunks_exact(8)
            .map(|id| u64::from_be_bytes(id.try_into().unwrap()));
        let places = (0..5)
            .map(|depth| late.place(&traces, serial, depth))
            .collect();
        assert_eq!(late.place(&traces, 2, 7), 7, "a thread that was known");
        (ids.map(|id| by_id[&id]).collect(), places)
    }

    const NOWHERE: u32 = u32::MAX;

    #[test]
    fn a_matching_stack_is_used_completely() {
        let stacks = known(&[(3, 1), (4, 6), (9, -1)]);
        // If the method is the same and only the bytecode index differs, the trace uses the index from the heap walk.
        let (frames, places) = trace_of(&stacks, 100, &[(0, (3, 7))]);
        assert_eq!(frames, [(3, 20), (4, 20), (9, -3)]);
        assert_eq!(places, [0, 1, 2, NOWHERE, NOWHERE]);
        // If the heap walk reports no bytecode index, the trace uses the index that was read before the fork.
        let (frames, _) = trace_of(&stacks, 100, &[(1, (4, -1))]);
        assert_eq!(frames, [(3, 10), (4, 20), (9, -3)]);
    }

    #[test]
    fn frames_missing_in_jvmti_come_from_the_heap_walk() {
        let stacks = known(&[(3, 1), (4, 6)]);
        let (frames, places) = trace_of(&stacks, 100, &[(0, (1, 0)), (2, (3, 1))]);
        assert_eq!(frames, [(1, 10), (3, 10), (4, 20)]);
        assert_eq!(places, [0, NOWHERE, 1, 2, NOWHERE]);
    }

    #[test]
    fn a_thread_that_moved_on_gets_frames_from_the_heap_walk() {
        let stacks = known(&[(3, 1), (4, 6)]);
        let moved = [(0, (4, 6)), (1, (5, 0)), (3, (77, 0))];
        let expected = (
            vec![(4, 20), (5, 10)],
            vec![0, 1, NOWHERE, NOWHERE, NOWHERE],
        );
        assert_eq!(trace_of(&stacks, 100, &moved), expected);
        // If a thread's stack was not read before the fork, its trace consists of the frames from the heap walk.
        assert_eq!(trace_of(&stacks, 200, &moved), expected);
        assert_eq!(trace_of(&stacks, 200, &[]).0, []);
    }

    #[test]
    fn the_state_shows_which_virtual_threads_are_alive() {
        let state = VirtualState { class: 1, place: 2 };
        let alive = |state_value: i32| {
            let mut values = vec![7, 7];
            values.extend_from_slice(&state_value.to_be_bytes());
            state.is_alive(&values)
        };
        assert_eq!([0, 1, 5, 99].map(alive), [false, true, true, false]);
        assert!(!state.is_alive(&[0, 0, 0, 5]));
    }
}
