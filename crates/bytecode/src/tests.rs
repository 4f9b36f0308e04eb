//! Rewrites hand-assembled methods and checks each form of instruction, frame and table.

use std::fs;

use testdata::jvm::{Jdk, Launch};
use testdata::programs;

use crate::class::ClassFile;
use crate::longer::Parts;
use crate::{
    Does, Entry, Error, Fault, Hooks, Kind, Name, Push, Reason, Rewritten, Site, Sites, enter,
    rewrite, within,
};

const HOOKS: Hooks<'static> = Hooks {
    owner: "test/lang/Hits",
    object: "object",
    array: "array",
    level: "level",
};

/// Gives consecutive numbers to allocation sites, starting with the first value. If the function returns false for a
/// site, this site gets no number.
struct From(i32, fn(&Site<'_>) -> bool);

impl Sites for From {
    fn number(&mut self, _: Name<'_>, site: &Site<'_>) -> Option<i32> {
        self.0 += 1;
        (self.1)(site).then_some(self.0 - 1)
    }
}

fn all() -> From {
    From(1, |_| true)
}

fn u16s(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// The constants with which the pool of each assembled class begins.
const OBJECT: u16 = 2;
const NODE: u16 = 5;
const INIT: u16 = 11;
const MAIN: u16 = 13;
const CODE: u16 = 14;
const LINES: u16 = 15;
const VARIABLES: u16 = 16;
const FRAMES: u16 = 17;
const ANNOTATIONS: u16 = 18;
const OTHER: u16 = 19;
const CONSTANTS: u16 = 20;

struct Assembled {
    version: u16,
    code: Vec<u8>,
    stack: u16,
    locals: u16,
    handlers: Vec<[u16; 4]>,
    attributes: Vec<(u16, Vec<u8>)>,
    /// The number of constants to add to the constant pool. Each constant is a string of one byte.
    filling: u16,
}

impl Assembled {
    fn new(code: &[&[u8]]) -> Self {
        Assembled {
            version: 61,
            code: code.concat(),
            stack: 10,
            locals: 3,
            handlers: Vec::new(),
            attributes: Vec::new(),
            filling: 0,
        }
    }

    fn with(mut self, attribute: u16, content: Vec<u8>) -> Self {
        self.attributes.push((attribute, content));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = 0xcafe_babe_u32.to_be_bytes().to_vec();
        out.extend(u16s(&[0, self.version, CONSTANTS + self.filling]));
        let text = |text: &str| {
            let length = u16::try_from(text.len()).unwrap();
            [&[1][..], &length.to_be_bytes(), text.as_bytes()].concat()
        };
        let class = |of: u16| [&[7][..], &of.to_be_bytes()].concat();
        let two = |tag: u8, a: u16, b: u16| [&[tag][..], &u16s(&[a, b])].concat();
        let constants = [
            text("java/lang/Object"),
            class(1),
            text("Old"),
            class(3),
            class(1),
            text("[[[I"),
            class(6),
            text("<init>"),
            text("()V"),
            two(12, 8, 9),
            two(10, OBJECT, 10),
            text("main"),
            text("([Ljava/lang/String;)V"),
            text("Code"),
            text("LineNumberTable"),
            text("LocalVariableTable"),
            text("StackMapTable"),
            text("RuntimeVisibleTypeAnnotations"),
            text("CharacterRangeTable"),
        ];
        out.extend(constants.concat());
        (0..self.filling).for_each(|_| out.extend([1, 0, 1, b'x']));
        // Access flags (public), class, superclass; no interfaces, no fields, one method.
        out.extend(u16s(&[
            0x21,
            4,
            OBJECT,
            0,
            0,
            1,
            9,
            MAIN - 1,
            MAIN,
            1,
            CODE,
        ]));
        let mut code = u16s(&[self.stack, self.locals]);
        code.extend(u32::try_from(self.code.len()).unwrap().to_be_bytes());
        code.extend(&self.code);
        code.extend(u16::try_from(self.handlers.len()).unwrap().to_be_bytes());
        code.extend(self.handlers.iter().flat_map(|handler| u16s(handler)));
        code.extend(u16::try_from(self.attributes.len()).unwrap().to_be_bytes());
        for (name, content) in &self.attributes {
            code.extend(name.to_be_bytes());
            code.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
            code.extend(content);
        }
        out.extend(u32::try_from(code.len()).unwrap().to_be_bytes());
        out.extend(code);
        out.extend([0, 0]);
        out
    }

    /// Rewrites the class with hooks for all sites. Passes the result, the new code and its tables to `look`.
    fn rewritten(&self, look: impl FnOnce(&Rewritten<'_>, &[u8], &Parts<'_>)) {
        self.rewritten_from(1, look);
    }

    /// Rewrites the class as [`Assembled::rewritten`] does, but gives the number `first` to the first site.
    fn rewritten_from(&self, first: i32, look: impl FnOnce(&Rewritten<'_>, &[u8], &Parts<'_>)) {
        let bytes = self.bytes();
        let rewritten = rewrite(&bytes, &HOOKS, &mut From(first, |_| true)).unwrap();
        assert_eq!(rewritten.left_alone, []);
        let new = rewritten.bytes.clone().unwrap();
        let file = ClassFile::read(&new).unwrap();
        let parts = Parts::read(file.methods[0].code, &file.pool).unwrap();
        let mut code = parts.code;
        let code = code.take(parts.length, "the code").unwrap();
        look(&rewritten, code, &parts);
    }

    fn attribute(&self, at: usize) -> Vec<u8> {
        let mut content = Vec::new();
        self.rewritten(|_, _, parts| {
            let mut cursor = parts.attributes[at].content;
            while !cursor.is_at_end() {
                content.push(cursor.u8("").unwrap());
            }
        });
        content
    }

    fn reason(&self) -> Reason {
        let bytes = self.bytes();
        let rewritten = rewrite(&bytes, &HOOKS, &mut all()).unwrap();
        assert!(rewritten.bytes.is_none() && rewritten.sites.is_empty());
        assert!(rewritten.dropped.is_empty());
        assert_eq!(rewritten.left_alone.len(), 1);
        assert_eq!(rewritten.left_alone[0].method.to_string(), "main");
        rewritten.left_alone[0].reason.clone()
    }

    fn fault(&self) -> Fault {
        match self.reason() {
            Reason::Damaged(damage) => damage.fault,
            other => panic!("{other}"),
        }
    }
}

/// The instructions `new Object` and `pop`: four bytes. The hook call adds four more bytes (`iconst`, `invokestatic`).
const POPPED: [u8; 4] = [0xbb, 0, 5, 0x57];
const RETURN: [u8; 1] = [0xb1];
const NOP: [u8; 1] = [0];

#[test]
fn inserted_calls_match_the_allocations() {
    assert_eq!(NODE, 5);
    let code = Assembled::new(&[
        &POPPED,
        &[0x06, 0xbc, 10, 0x57],            // iconst_3, newarray int, pop
        &[0x06, 0xbd, 0, 5, 0x57],          // anewarray Object
        &[0x05, 0x06, 0xc5, 0, 7, 2, 0x57], // iconst_2, iconst_3, multianewarray [[[I, two dimensions
        &[0x06, 0xc5, 0, 7, 1, 0x57],       // one dimension
        &RETURN,
    ])
    .with(LINES, u16s(&[3, 0, 10, 8, 20, 4, 15]));
    code.rewritten(|rewritten, new, parts| {
        let told: Vec<_> = rewritten
            .sites
            .iter()
            .map(|c| {
                (
                    c.number,
                    c.site.bytecode,
                    c.site.line,
                    c.site.kind,
                    c.site.class.to_string(),
                )
            })
            .collect();
        let told: Vec<_> = told
            .iter()
            .map(|t| (t.0, t.1, t.2, t.3, t.4.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1, 0, Some(10), Kind::Object, "java/lang/Object"),
                (2, 5, Some(15), Kind::Array, "[I"),
                (3, 9, Some(20), Kind::Array, "[Ljava/lang/Object;"),
                (4, 15, Some(20), Kind::Level(0), "[[[I"),
                (5, 15, Some(20), Kind::Level(1), "[[I"),
                (6, 21, Some(20), Kind::Array, "[[[I"),
            ]
        );
        assert_eq!((parts.max_stack, parts.max_locals), (12, 5));
        // The new constants begin at 20: the class name, the class, and then for each hook its name, descriptor, name
        // and type, and method.
        let expected: &[&[u8]] = &[
            &[0x04, 0xb8, 0, 25, 0xbb, 0, 5, 0x57],
            &[0x06, 0x59, 0x05, 0xb8, 0, 29, 0xbc, 10, 0x57],
            &[0x06, 0x59, 0x06, 0xb8, 0, 29, 0xbd, 0, 5, 0x57],
            &[0x05, 0x06, 0x36, 4, 0x36, 3, 0x0a],
            &[0x15, 3, 0x07, 0xb8, 0, 33, 0x15, 4, 0x08, 0xb8, 0, 33],
            &[0x58, 0x15, 3, 0x15, 4, 0xc5, 0, 7, 2, 0x57],
            &[0x06, 0x59, 0x10, 6, 0xb8, 0, 29, 0xc5, 0, 7, 1, 0x57],
            &RETURN,
        ];
        assert_eq!(new, expected.concat());
    });
}

#[test]
fn numbers_of_each_size_are_pushed() {
    let expected: [(i32, &[u8]); 8] = [
        (-1, &[0x02]),
        (5, &[0x08]),
        (6, &[0x10, 6]),
        (-128, &[0x10, 0x80]),
        (128, &[0x11, 0, 128]),
        (32_767, &[0x11, 0x7f, 0xff]),
        (32_768, &[0x12, 26]),
        (i32::MIN, &[0x12, 26]),
    ];
    for (filling, wide) in [(0, false), (300, true)] {
        for (number, push) in expected {
            let mut class = Assembled::new(&[&POPPED, &RETURN]);
            class.filling = filling;
            let bytes = class.bytes();
            let new = rewrite(&bytes, &HOOKS, &mut From(number, |_| true)).unwrap();
            let new = new.bytes.unwrap();
            let file = ClassFile::read(&new).unwrap();
            let parts = Parts::read(file.methods[0].code, &file.pool).unwrap();
            let code = { parts.code }.take(parts.length, "").unwrap();
            if push[0] == 0x12 && wide {
                assert_eq!(code[..3], [0x13, 1, 70], "{number}");
            } else {
                assert!(code.starts_with(push), "{number}: {code:?}");
            }
        }
    }
}

#[test]
fn a_switch_is_padded_for_its_new_position() {
    for before in 0..4 {
        for counted in 1..5 {
            // The method creates `counted` objects. Four bytes are inserted before the first `new`, and five bytes
            // before each later `new`, whose site number is larger. `iconst_0` (0x03) precedes the `tableswitch`.
            let objects = [NOP.repeat(before), POPPED.repeat(counted), vec![0x03]].concat();
            let at = objects.len();
            let pad = vec![0; 3 - at % 4];
            let size = 1 + pad.len() + 12 + 8;
            let end = i32::try_from(size).unwrap();
            let back = -i32::try_from(at - before).unwrap();
            let mut code = [objects, vec![0xaa], pad].concat();
            for number in [end, 0, 1, back, end] {
                code.extend(number.to_be_bytes());
            }
            code.extend(RETURN);
            Assembled::new(&[&code]).rewritten_from(5, |_, new, _| {
                let at = before + 8 * counted + (counted - 1) + 1;
                assert_eq!(new[at], 0xaa);
                let aligned = at / 4 * 4 + 4;
                assert!(new[at + 1..aligned].iter().all(|&b| b == 0));
                let numbers: Vec<_> = new[aligned..new.len() - 1]
                    .chunks(4)
                    .map(|c| i32::from_be_bytes(c.try_into().unwrap()))
                    .collect();
                let end = i32::try_from(new.len() - 1 - at).unwrap();
                let back = -i32::try_from(at - before).unwrap();
                assert_eq!(numbers, [end, 0, 1, back, end]);
            });
        }
    }
    // `lookupswitch`: its keys do not change.
    let mut code = vec![0x03, 0xab, 0, 0];
    for number in [27, 2, -5, 27, 1 << 30, 31] {
        code.extend(i32::to_be_bytes(number));
    }
    let code = Assembled::new(&[&code, &POPPED, &RETURN]);
    code.rewritten(|_, new, _| {
        let numbers = new[4..28]
            .chunks(4)
            .map(|c| i32::from_be_bytes(c.try_into().unwrap()));
        assert!(numbers.eq([27, 2, -5, 27, 1 << 30, 35]));
    });
}

#[test]
fn jumps_reach_the_call_or_the_method_is_unchanged() {
    // Two jumps. The `goto` jumps over the code that creates one object, to the code that creates another. The `goto_w`
    // jumps over the code that creates an object, to the `return`.
    let code: &[&[u8]] = &[
        &[0xa7, 0, 7],
        &POPPED,
        &POPPED,
        &[0xc8, 0, 0, 0, 9],
        &POPPED,
        &RETURN,
    ];
    Assembled::new(code).rewritten(|_, new, _| {
        assert_eq!(new[..3], [0xa7, 0, 11]);
        assert_eq!(new[19..24], [0xc8, 0, 0, 0, 13]);
    });
    // Tests the largest jump distance that fits into 16 bits, forwards and backwards, and a distance one byte longer.
    let farthest = [&POPPED[..], &NOP.repeat(32_767 - 3 - 4 - 4)].concat();
    let forwards = |body: &[u8]| {
        let distance = u16::try_from(3 + body.len()).unwrap().to_be_bytes();
        Assembled::new(&[&[0xa7], &distance, body, &RETURN])
    };
    forwards(&farthest).rewritten(|_, new, _| assert_eq!(new[..3], [0xa7, 0x7f, 0xff]));
    let farther = [&farthest[..], &NOP].concat();
    assert_eq!(forwards(&farther).reason(), Reason::JumpTooFar(0));
    let farthest = [&POPPED[..], &NOP.repeat(32_768 - 4 - 4)].concat();
    let backwards = |body: &[u8]| {
        let distance = i16::try_from(-i32::try_from(body.len()).unwrap()).unwrap();
        Assembled::new(&[body, &[0xa7], &distance.to_be_bytes(), &RETURN])
    };
    backwards(&farthest).rewritten(|_, new, _| {
        assert_eq!(new[32_768..], [0xa7, 0x80, 0, 0xb1]);
    });
    let farther = [&farthest[..], &NOP].concat();
    assert_eq!(backwards(&farther).reason(), Reason::JumpTooFar(32_765));
    // Invalid jump targets: inside an instruction, before the code, and at the end of the code.
    for distance in [[0, 4], [0xff, 0xff], [0, 8]] {
        let code = Assembled::new(&[&[0xa7], &distance, &POPPED, &RETURN]);
        assert!(matches!(code.fault(), Fault::Target(4 | -1 | 8)));
    }
}

#[test]
fn a_method_has_64_kilobytes_at_most() {
    let code = |nops| Assembled::new(&[&POPPED, &NOP.repeat(nops), &RETURN]);
    code(65_535 - 4 - 4 - 1).rewritten(|_, new, _| assert_eq!(new.len(), 65_535));
    assert_eq!(code(65_535 - 4 - 3 - 1).reason(), Reason::TooLong);
    assert_eq!(code(65_535 - 4).fault(), Fault::CodeLength(65_536));
    assert_eq!(Assembled::new(&[]).fault(), Fault::CodeLength(0));
    // The method has many instructions that allocate arrays with many dimensions. When the new code gets too long, the
    // remaining instructions get no site numbers.
    let deep = Assembled::new(&[&[0xc5, 0, 7, 2].repeat(16_000)]);
    let bytes = deep.bytes();
    let mut numbers = all();
    rewrite(&bytes, &HOOKS, &mut numbers).unwrap();
    assert!(numbers.0 < 10_000, "{}", numbers.0);
}

#[test]
fn methods_at_stack_local_or_pool_limits_are_unchanged() {
    let array: &[&[u8]] = &[&[0x06, 0xbc, 10, 0x57], &RETURN];
    let mut code = Assembled::new(array);
    code.stack = 65_534;
    assert_eq!(code.reason(), Reason::StackTooDeep);
    code.stack = 65_533;
    code.rewritten(|_, _, parts| assert_eq!(parts.max_stack, 65_535));
    let levels: &[&[u8]] = &[&[0x06, 0x06, 0xc5, 0, 7, 2, 0x57], &RETURN];
    let mut code = Assembled::new(levels);
    code.locals = 65_534;
    assert_eq!(code.reason(), Reason::TooManyLocals);
    code.locals = 65_533;
    code.rewritten(|_, new, parts| {
        assert_eq!(parts.max_locals, 65_535);
        assert_eq!(new[2..10], [0xc4, 0x36, 0xff, 0xfe, 0xc4, 0x36, 0xff, 0xfd]);
    });
    let mut code = Assembled::new(&[&POPPED, &RETURN]);
    code.filling = 65_535 - CONSTANTS - 5;
    assert_eq!(code.reason(), Reason::PoolFull);
    code.filling -= 1;
    code.rewritten(|_, _, _| {});
}

#[test]
fn uncounted_array_dimensions_are_still_multiplied() {
    let code = Assembled::new(&[&[0x05, 0x06, 0x07, 0xc5, 0, 7, 3, 0x57], &RETURN]);
    let bytes = code.bytes();
    let code_with = |pick: fn(&Site<'_>) -> bool| {
        let new = rewrite(&bytes, &HOOKS, &mut From(1, pick)).unwrap();
        let sites = new.sites.len();
        let code = new.bytes.map(|new| {
            let file = ClassFile::read(&new).unwrap();
            let parts = Parts::read(file.methods[0].code, &file.pool).unwrap();
            assert_eq!((parts.max_stack, parts.max_locals), (11, 6));
            { parts.code }.take(parts.length, "").unwrap().to_vec()
        });
        (sites, code)
    };
    assert_eq!(code_with(|_| false), (0, None));
    let (sites, code) = code_with(|site| site.kind == Kind::Level(1));
    assert_eq!(sites, 1);
    // Instructions: lconst_1, iload 3, i2l, lmul, iload 4, iconst_2, call, pop2. The length of the third dimension is
    // not needed, because only the second dimension is counted.
    let levels = [0x0a, 0x15, 3, 0x85, 0x69, 0x15, 4, 0x05, 0xb8, 0, 25, 0x58];
    assert_eq!(code.unwrap()[9..21], levels);
}

#[test]
fn stack_map_frames_of_each_kind_are_moved() {
    // The method begins with a `new` at offset 0. `nop`s follow at 4, 5, ..., to which stack map frames can refer.
    let code = |frames: &[&[u8]]| {
        let count = u16::try_from(frames.len()).unwrap();
        let content = [&count.to_be_bytes()[..], &frames.concat()].concat();
        Assembled::new(&[
            &POPPED,
            &NOP.repeat(200),
            &POPPED,
            &NOP.repeat(100),
            &RETURN,
        ])
        .with(FRAMES, content)
        .attribute(0)
    };
    // Four bytes are inserted at offset 0. A frame at offset 0 stays there. The next frame moves by four bytes.
    assert_eq!(code(&[&[0], &[3]]), [0, 2, 0, 7]);
    assert_eq!(code(&[&[4], &[0]]), [0, 2, 8, 0]);
    // A frame stores its distance from the previous frame. The four inserted bytes increase the first distance by four.
    // The short form holds at most 63, so an old distance of at most 59 still fits into it. Frames in the long form get
    // the short form if their new distance fits.
    assert_eq!(code(&[&[59]]), [0, 1, 63]);
    assert_eq!(code(&[&[60]]), [0, 1, 251, 0, 64]);
    assert_eq!(code(&[&[251, 0, 4]]), [0, 1, 8]);
    assert_eq!(code(&[&[251, 0, 250]]), [0, 1, 251, 1, 2]);
    // Frames with one value on the stack also have a short form and a long form.
    assert_eq!(code(&[&[64 + 59, 1]]), [0, 1, 64 + 63, 1]);
    assert_eq!(code(&[&[64 + 60, 7, 0, 5]]), [0, 1, 247, 0, 64, 7, 0, 5]);
    assert_eq!(
        code(&[&[247, 0, 100, 8, 0, 204]]),
        [0, 1, 247, 0, 104, 8, 0, 212]
    );
    // Frames of the kinds chop, append and full. A frame identifies an uninitialised object by the offset of its `new`.
    // Here, the offset of the `new` moves from 0 to 4, because four bytes are inserted before the `new`.
    assert_eq!(code(&[&[248, 0, 4]]), [0, 1, 248, 0, 8]);
    assert_eq!(
        code(&[&[253, 0, 4, 8, 0, 0, 4]]),
        [0, 1, 253, 0, 8, 8, 0, 4, 4]
    );
    assert_eq!(
        code(&[&[255, 0, 204, 0, 2, 1, 6, 0, 1, 8, 0, 0], &[3]]),
        [0, 2, 255, 0, 208, 0, 2, 1, 6, 0, 1, 8, 0, 4, 7]
    );
}

#[test]
fn damaged_frames_leave_the_method_alone() {
    let fault = |content: &[u8]| {
        let code = Assembled::new(&[&POPPED, &NOP.repeat(9), &RETURN]);
        code.with(FRAMES, content.to_vec()).fault()
    };
    assert_eq!(fault(&[0, 1, 128]), Fault::Frame(128));
    assert_eq!(fault(&[0, 1, 246]), Fault::Frame(246));
    assert_eq!(fault(&[0, 1, 68, 9]), Fault::FrameType(9));
    assert_eq!(fault(&[0, 1, 68, 8, 0, 4]), Fault::NotNew(4));
    assert_eq!(fault(&[0, 1, 1]), Fault::Target(1));
    assert_eq!(fault(&[0, 1, 251, 255, 255]), Fault::Target(65_535));
    assert_eq!(fault(&[0, 2, 4]), Fault::Short("the frames"));
    assert_eq!(fault(&[0, 1, 4, 4]), Fault::Trailing(1, "the frames"));
    let twice = Assembled::new(&[&POPPED, &RETURN]);
    let twice = twice.with(FRAMES, vec![0, 0]).with(FRAMES, vec![0, 0]);
    assert_eq!(twice.fault(), Fault::Second("StackMapTable"));
}

#[test]
fn tables_are_moved_and_unknown_attributes_removed() {
    let ranges = u16s(&[2, 0, 4, 1, 1, 0, 4, 5, 1, 1, 1]);
    let mut code = Assembled::new(&[&POPPED, &POPPED, &RETURN])
        .with(LINES, u16s(&[3, 0, 1, 4, 2, 8, 3]))
        .with(OTHER, vec![1, 2, 3])
        .with(VARIABLES, ranges);
    code.handlers.push([0, 4, 8, 0]);
    code.handlers.push([4, 9, 4, 5]);
    code.rewritten(|rewritten, _, parts| {
        let mut handlers = parts.exceptions.1;
        let handlers = handlers.take(16, "").unwrap();
        assert_eq!(handlers, u16s(&[0, 8, 16, 0, 8, 17, 8, 5]));
        assert_eq!(parts.attributes.len(), 2);
        let dropped: Vec<_> = rewritten
            .dropped
            .iter()
            .map(|d| d.attribute.to_string())
            .collect();
        assert_eq!(dropped, ["CharacterRangeTable"]);
    });
    assert_eq!(code.attribute(0), u16s(&[3, 0, 1, 8, 2, 16, 3]));
    assert_eq!(code.attribute(1), u16s(&[2, 0, 8, 1, 1, 0, 8, 9, 1, 1, 1]));
}

#[test]
fn type_annotations_move_with_their_targets() {
    // One annotation value of each kind. Some values are nested.
    let values: &[u8] = &[
        0, 1, 0, 3, 0, 1, b'I', 0, 1, 0, 1, b'e', 0, 1, 0, 1, 0, 1, b'[', 0, 2, b'@', 0, 1, 0, 1,
        0, 1, b's', 0, 1, b'c', 0, 1,
    ];
    let annotation = |target: &[u8]| [target, &[1, 0, 0], values].concat();
    let annotations = |of: [[u8; 3]; 2], [start, length]: [u8; 2]| {
        [
            &[0, 4][..],
            // Targets of type annotations: a `new`, a type argument of a cast, a variable, an exception handler.
            &annotation(&of[0]),
            &annotation(&[&of[1][..], &[7]].concat()),
            &annotation(&[0x40, 0, 1, 0, start, 0, length, 0, 1]),
            &annotation(&[0x42, 0, 0]),
        ]
        .concat()
    };
    let mut content = annotations([[0x44, 0, 4], [0x47, 0, 3]], [4, 4]);
    let code = Assembled::new(&[&POPPED, &POPPED, &RETURN]).with(ANNOTATIONS, content.clone());
    // The range of the variable begins at the second hook call.
    let expected = annotations([[0x44, 0, 12], [0x47, 0, 7]], [8, 8]);
    assert_eq!(code.attribute(0), expected);

    let with =
        |content: Vec<u8>| Assembled::new(&[&POPPED, &POPPED, &RETURN]).with(ANNOTATIONS, content);
    content[2] = 0x4c;
    assert_eq!(with(content.clone()).fault(), Fault::AnnotationTarget(0x4c));
    content[2] = 0x44;
    content[4] = 5;
    assert_eq!(with(content.clone()).fault(), Fault::Target(5));
    content[4] = 4;
    let value = content.iter().position(|&b| b == b'I').unwrap();
    content[value] = b'?';
    assert_eq!(with(content).fault(), Fault::AnnotationValue(b'?'));
    // The nesting of the annotations is as deep as the length of the attribute allows.
    let deep = [
        &[0, 1, 0x42, 0, 0, 0, 0, 1, 0, 1, 0, 1][..],
        &[b'[', 0, 1].repeat(500_000),
    ]
    .concat();
    assert_eq!(with(deep).fault(), Fault::Short("the type annotations"));
}

#[test]
fn damaged_code_leaves_the_method_alone() {
    let fault = |code: &[&[u8]]| Assembled::new(code).fault();
    assert_eq!(fault(&[&POPPED, &[0xca]]), Fault::Opcode(0xca));
    assert_eq!(fault(&[&POPPED, &[0xc4, 0x60, 0, 0]]), Fault::Opcode(0x60));
    assert_eq!(fault(&[&[0xbb, 0]]), Fault::Short("the code"));
    assert_eq!(fault(&[&[0xbc, 3]]), Fault::ArrayKind(3));
    assert_eq!(fault(&[&[0xc5, 0, 7, 0]]), Fault::Sizes(0));
    assert_eq!(fault(&[&[0xc5, 0, 7, 4]]), Fault::Sizes(4));
    let wanted = "a class";
    assert_eq!(
        fault(&[&[0xbb, 0, 1]]),
        Fault::Constant { index: 1, wanted }
    );
    let table = [0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 4];
    assert_eq!(fault(&[&table, &POPPED]), Fault::Switch { low: 5, high: 4 });
    let lookup = [0xab, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(
        fault(&[&lookup, &POPPED]),
        Fault::Switch { low: -1, high: -1 }
    );
    // The number of switch cases is huge. The reader must not allocate memory for all these cases.
    let huge = [0xab, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff];
    assert_eq!(fault(&[&huge, &POPPED]), Fault::Short("the code"));
}

#[test]
fn an_incomplete_class_is_an_error() {
    let whole = Assembled::new(&[&POPPED, &RETURN]).bytes();
    for end in 0..whole.len() {
        let error = rewrite(&whole[..end], &HOOKS, &mut all()).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{end}");
    }
    let longer = [&whole[..], &[0]].concat();
    let error = rewrite(&longer, &HOOKS, &mut all()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("1 extra bytes follow the end of the class")
    );
    let mut other = whole.clone();
    other[10] = 2;
    let error = rewrite(&other, &HOOKS, &mut all()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("a constant has the unknown kind 2"),
        "{error}"
    );
    let error = rewrite(b"PK\x03\x04____", &HOOKS, &mut all()).unwrap_err();
    assert!(error.to_string().contains("must begin with"));
    for owner in ["", "\u{e9}", "a b", &"x".repeat(1001)] {
        let hooks = Hooks { owner, ..HOOKS };
        let error = rewrite(&whole, &hooks, &mut all()).unwrap_err();
        assert_eq!(error, Error::HookName(owner.to_owned()));
    }
}

#[test]
fn unwanted_methods_are_unchanged() {
    struct Unwanted;
    impl Sites for Unwanted {
        fn wants(&mut self, class: Name<'_>, method: Name<'_>, descriptor: Name<'_>) -> bool {
            assert_eq!(class.as_bytes(), b"Old");
            assert_eq!(
                format!("{method}{descriptor}"),
                "main([Ljava/lang/String;)V"
            );
            false
        }
        fn number(&mut self, _: Name<'_>, _: &Site<'_>) -> Option<i32> {
            panic!("asked for");
        }
    }
    let bytes = Assembled::new(&[&POPPED, &RETURN]).bytes();
    assert_eq!(rewrite(&bytes, &HOOKS, &mut Unwanted).unwrap().bytes, None);
    let hooks = Hooks {
        owner: "Old",
        ..HOOKS
    };
    assert_eq!(rewrite(&bytes, &hooks, &mut all()).unwrap().bytes, None);
    let none = Assembled::new(&[&RETURN]).bytes();
    assert_eq!(rewrite(&none, &HOOKS, &mut all()).unwrap().bytes, None);
}

/// A class from 1998, which has no frames. Its `finally` block is a subroutine that is called twice and allocates.
#[test]
fn subroutines_of_old_classes_are_instrumented() {
    let mut code = Assembled::new(&[
        &[0xa8, 0, 7],                      // 0: jsr 7
        &[0xa8, 0, 4],                      // 3: jsr 7
        &RETURN,                            // 6
        &[0x4d],                            // 7: astore_2
        &[0xbb, 0, 5, 0x59],                // 8: new Object, dup
        &[0xb7, 0, 11, 0x57],               // 12: invokespecial, pop
        &[0x05, 0x06, 0xc5, 0, 7, 2, 0x57], // 16: new int[2][3][]
        &[0xa9, 2],                         // 23: ret 2
    ]);
    assert_eq!(INIT, 11);
    code.version = 46;
    code.stack = 2;
    let bytes = code.bytes();
    let new = rewrite(&bytes, &HOOKS, &mut all()).unwrap().bytes.unwrap();
    let jdks = Jdk::all_for_scenarios();
    assert!(!jdks.is_empty(), "no JDK from 17 on");
    for jdk in jdks {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Old.class"), &new).unwrap();
        let programs = ["Hits.java", "Allocations.java"].map(programs::bytecode);
        let [hits, tell] = programs.map(|p| jdk.compile(&p).unwrap());
        let path = [folder.path(), &hits, &tell].map(|p| p.display().to_string());
        let mut java = Launch::class(&jdk, path.join(":"), "Allocations")
            .flag("-Xverify:all")
            .arg("Old")
            .start()
            .unwrap();
        let lines = java.lines_until_ready().unwrap();
        assert_eq!(
            lines,
            ["HIT 1 2 0", "HIT 2 2 4", "HIT 3 4 12"],
            "{}",
            jdk.version()
        );
    }
}

/// The method ends with a jump to its first instruction. An exception handler's range, a variable's range and a source
/// line also begin at the first instruction.
#[test]
fn a_call_on_entry_is_made_once() {
    let class = Assembled {
        handlers: vec![[0, 1, 1, 0]],
        stack: 1,
        ..Assembled::new(&[&NOP, &[0xa7, 0xff, 0xff]])
    };
    let class = class
        .with(LINES, u16s(&[1, 0, 10]))
        .with(VARIABLES, u16s(&[1, 0, 4, 8, 9, 0]))
        .with(FRAMES, vec![0, 1, 0]);
    let bytes = class.bytes();
    let entry = || Entry {
        pushes: vec![
            Push::Reference(0),
            Push::Number(1),
            Push::Constant(2),
            Push::Less,
        ],
        hook: ["a/Hook", "in", "(Ljava/lang/Object;I)V"],
    };
    let entered = enter(&bytes, |name, descriptor| {
        assert_eq!(descriptor.to_string(), "([Ljava/lang/String;)V");
        (name.as_bytes() == b"main").then(entry)
    })
    .unwrap();
    assert_eq!((entered.methods.len(), entered.left_alone.len()), (1, 0));
    let new = entered.bytes.unwrap();
    let file = ClassFile::read(&new).unwrap();
    let parts = Parts::read(file.methods[0].code, &file.pool).unwrap();
    let mut code = parts.code;
    let code = code.take(parts.length, "the code").unwrap();
    assert_eq!(code[..7], [0x19, 0, 0x15, 1, 0x05, 0x64, 0xb8]);
    // The jump still has its old distance, so it leads to the old first instruction and skips the inserted call.
    assert_eq!(code[9..], [0, 0xa7, 0xff, 0xff]);
    assert_eq!(parts.max_stack, 3);
    let content = |mut cursor: crate::cursor::Cursor<'_>| {
        let mut bytes = Vec::new();
        while !cursor.is_at_end() {
            bytes.push(cursor.u8("").unwrap());
        }
        bytes
    };
    // The range of the exception handler does not include the inserted call. The line table assigns the line of the
    // first instruction to the call. The ranges of local variables include the call.
    assert_eq!(content(parts.exceptions.1), u16s(&[9, 10, 10, 0]));
    assert_eq!(content(parts.attributes[0].content), u16s(&[1, 0, 10]));
    assert_eq!(
        content(parts.attributes[1].content),
        u16s(&[1, 0, 13, 8, 9, 0])
    );
    assert_eq!(content(parts.attributes[2].content), [0, 1, 9]);
    // If no hook call is requested, nothing changes. Bytes that are not a class file are an error.
    assert_eq!(enter(&bytes, |_, _| None).unwrap().bytes, None);
    assert!(enter(b"no class", |_, _| None).is_err());
}

/// One jump leads to an instruction that sets a field. Another jump leads to a call of a method.
#[test]
fn calls_are_inserted_before_fields_and_after_calls() {
    let class = Assembled::new(&[
        &[0xa7, 0, 3],       // 0: goto 3
        &[0xb5, 0, 11],      // 3: putfield
        &[0xb7, 0, 11],      // 6: invokespecial
        &[0xa7, 0xff, 0xfd], // 9: goto 6
    ]);
    let bytes = class.with(FRAMES, vec![0, 2, 3, 2]).bytes();
    let mut steps = Vec::new();
    let new = within(&bytes, |step| {
        assert_eq!(step.method.0.to_string(), "main");
        steps.push((
            step.does,
            format!("{}.{}{}", step.owner, step.name, step.descriptor),
        ));
        let pushes = match step.does {
            Does::Sets => vec![Push::PairAgain, Push::Swap, Push::Again],
            Does::Calls => vec![Push::Again],
        };
        Some(Entry {
            pushes,
            hook: ["a/Hook", "at", "()V"],
        })
    });
    let of = || "java/lang/Object.<init>()V".to_owned();
    let new = new.unwrap().bytes.unwrap();
    assert_eq!(steps, [(Does::Sets, of()), (Does::Calls, of())]);
    let file = ClassFile::read(&new).unwrap();
    let parts = Parts::read(file.methods[0].code, &file.pool).unwrap();
    let mut code = parts.code;
    let code = code.take(parts.length, "the code").unwrap();
    assert_eq!(code[..7], [0xa7, 0, 3, 0x5c, 0x5f, 0x59, 0xb8]);
    assert_eq!(code[9..17], [0xb5, 0, 11, 0xb7, 0, 11, 0x59, 0xb8]);
    assert_eq!(code[19..], [0xa7, 0xff, 0xf9]);
    assert_eq!(parts.max_stack, 13);
    let mut frames = parts.attributes[0].content;
    assert_eq!(frames.take(4, "frames").unwrap(), [0, 2, 3, 8]);
    assert_eq!(within(&bytes, |_| None).unwrap().bytes, None);
    assert!(within(b"no class", |_| None).is_err());
}
