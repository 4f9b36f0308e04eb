//! A class file, method by method.

use crate::calls::{After, Call, INVOKEDYNAMIC, INVOKEVIRTUAL, Told, called};
use crate::class::{ClassFile, Method, POOL_COUNT};
use crate::code::{
    ANEWARRAY, Cases, Form, Instruction, Instructions, MULTIANEWARRAY, NEW, NEWARRAY, padding,
};
use crate::cursor::Cursor;
use crate::error::{Damage, Error, Fault, Reason};
use crate::frames;
use crate::insert::{Calls, Constants};
use crate::moved::{LONGEST, Moved};
use crate::pool::{Additions, Pool};
use crate::site::{ClassName, Kind, Name, Site};
use crate::tables::{self, Lines};

/// What is called: static methods of a class that every loader finds. Names are plain ASCII.
#[derive(Clone, Copy, Debug)]
pub struct Hooks<'h> {
    /// The class, such as `a/b/Hooks`. It is not rewritten itself.
    pub owner: &'h str,
    /// Called before an object: `(I)V`, the site.
    pub object: &'h str,
    /// Called before an array: `(II)V`, the length and the site.
    pub array: &'h str,
    /// Called before the arrays of a level: `(JII)J`, their number, the length of each, the site. Returns number times length.
    pub level: &'h str,
}

/// Says which allocations are counted.
pub trait Sites {
    /// Whether a method of a class is looked at.
    fn wants(&mut self, class: Name<'_>, method: Name<'_>, descriptor: Name<'_>) -> bool {
        let _ = (class, method, descriptor);
        true
    }

    /// What is told of what a call returns, if its site gets a number; nothing, if this is not written.
    fn told(&mut self, call: &Call<'_>) -> Option<Told> {
        let _ = call;
        None
    }

    /// The number of a site of a class; `None` leaves it out. Sites are asked for in the order of the code. A method may still
    /// be left alone when its sites have numbers: those are then in no list.
    fn number(&mut self, class: Name<'_>, site: &Site<'_>) -> Option<i32>;
}

/// A site that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    /// Its number.
    pub number: i32,
    /// Where it is.
    pub site: Site<'a>,
}

/// A method that stays as it is, though it has sites, or may have some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone<'a> {
    /// Its name.
    pub method: Name<'a>,
    /// Its descriptor.
    pub descriptor: Name<'a>,
    /// Why.
    pub reason: Reason,
}

/// An attribute of code that is not described, and may have held offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<'a> {
    /// The method's name.
    pub method: Name<'a>,
    /// The method's descriptor.
    pub descriptor: Name<'a>,
    /// The attribute's name.
    pub attribute: Name<'a>,
}

/// What became of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten<'a> {
    /// The class's name.
    pub class: Name<'a>,
    /// The new class file; `None` where nothing changes.
    pub bytes: Option<Vec<u8>>,
    /// The sites that are counted, by method and place.
    pub sites: Vec<Counted<'a>>,
    /// The methods that are not.
    pub left_alone: Vec<LeftAlone<'a>>,
    /// Attributes that went.
    pub dropped: Vec<Dropped<'a>>,
}

/// Inserts a call before each allocation that has a number.
///
/// # Errors
/// When the class cannot be read to its end, or a hook cannot be called so. The class is to be left as it is.
pub fn rewrite<'a>(
    class: &'a [u8],
    hooks: &Hooks<'_>,
    sites: &mut impl Sites,
) -> Result<Rewritten<'a>, Error> {
    for name in [hooks.owner, hooks.object, hooks.array, hooks.level] {
        let printable = name.bytes().all(|b| b.is_ascii_graphic());
        if name.is_empty() || !printable || name.len() > 1000 {
            return Err(Error::HookName(name.to_owned()));
        }
    }
    let file = ClassFile::read(class)?;
    let mut rewritten = Rewritten {
        class: file.name,
        bytes: None,
        sites: Vec::new(),
        left_alone: Vec::new(),
        dropped: Vec::new(),
    };
    if file.name.as_bytes() == hooks.owner.as_bytes() {
        return Ok(rewritten);
    }
    let mut constants = Constants::new(hooks, Additions::after(&file.pool));
    let mut changes = Vec::new();
    for method in &file.methods {
        let (name, descriptor) = (method.name, method.descriptor);
        if !sites.wants(file.name, name, descriptor) {
            continue;
        }
        let before = constants.before();
        let counted = rewritten.sites.len();
        let dropped = rewritten.dropped.len();
        let mut of = OfMethod {
            file: &file,
            method,
            sites,
            constants: &mut constants,
            rewritten: &mut rewritten,
        };
        match of.code() {
            Ok(Some(code)) => changes.push((method, code)),
            Ok(None) => constants.back_to(before),
            Err(reason) => {
                constants.back_to(before);
                rewritten.sites.truncate(counted);
                rewritten.dropped.truncate(dropped);
                rewritten.left_alone.push(LeftAlone {
                    method: name,
                    descriptor,
                    reason,
                });
            }
        }
    }
    if !changes.is_empty() {
        rewritten.bytes = Some(written(class, &file, &constants.added, &changes));
    }
    Ok(rewritten)
}

/// The file with more constants and other codes.
fn written(
    class: &[u8],
    file: &ClassFile<'_>,
    added: &Additions,
    changes: &[(&Method<'_>, Vec<u8>)],
) -> Vec<u8> {
    let more: usize = changes.iter().map(|(_, code)| code.len()).sum();
    let mut out = Vec::with_capacity(class.len() + added.bytes().len() + more);
    let mut copied = 0;
    let mut copy = |out: &mut Vec<u8>, to: usize, skipped_to: usize| {
        out.extend(class.get(copied..to).unwrap_or_default());
        copied = skipped_to;
    };
    copy(&mut out, POOL_COUNT.start, POOL_COUNT.end);
    out.extend(added.count());
    copy(&mut out, file.pool_end, file.pool_end);
    out.extend(added.bytes());
    for (method, code) in changes {
        copy(&mut out, method.place.start - 4, method.place.end);
        // Code has less than 64 KB, and its tables are no longer than they were.
        let length = u32::try_from(code.len()).unwrap_or(u32::MAX);
        out.extend(length.to_be_bytes());
        out.extend(code);
    }
    copy(&mut out, class.len(), class.len());
    out
}

/// What is inserted before an instruction, or after it: from and to where in the inserted code.
struct Inserted {
    at: usize,
    start: usize,
    end: usize,
    after: bool,
}

/// An instruction that may get a call.
struct Allocation<'a> {
    instruction: Instruction<'a>,
    /// What is told of what it returns, if it is a call.
    after: Option<After<'a>>,
}

struct OfMethod<'o, 'f, 'a, 'h, S> {
    file: &'f ClassFile<'a>,
    method: &'f Method<'a>,
    sites: &'o mut S,
    constants: &'o mut Constants<'h>,
    rewritten: &'o mut Rewritten<'a>,
}

/// The parts of the attribute `Code`.
pub(crate) struct Parts<'a> {
    pub(crate) max_stack: u16,
    pub(crate) max_locals: u16,
    pub(crate) code: Cursor<'a>,
    pub(crate) length: usize,
    pub(crate) exceptions: (u16, Cursor<'a>),
    pub(crate) attributes: Vec<Attribute<'a>>,
}

pub(crate) struct Attribute<'a> {
    pub(crate) index: u16,
    pub(crate) name: &'a [u8],
    pub(crate) content: Cursor<'a>,
}

impl<'a> Parts<'a> {
    pub(crate) fn read(mut cursor: Cursor<'a>, pool: &Pool<'a>) -> Result<Self, Damage> {
        const WHAT: &str = "the attribute Code";
        let (max_stack, max_locals) = (cursor.u16(WHAT)?, cursor.u16(WHAT)?);
        let offset = cursor.offset();
        let told = cursor.u32(WHAT)?;
        let length = usize::try_from(told).unwrap_or(usize::MAX);
        if !(1..=LONGEST).contains(&length) {
            return Err(Fault::CodeLength(told).at(offset));
        }
        let code = cursor.part(length, WHAT)?;
        let handlers = cursor.u16(WHAT)?;
        let exceptions = cursor.part(8 * usize::from(handlers), WHAT)?;
        let mut attributes = Vec::new();
        for _ in 0..cursor.u16(WHAT)? {
            let index = cursor.u16(WHAT)?;
            let name = pool.utf8(index)?;
            let length = cursor.length(WHAT)?;
            let content = cursor.part(length, WHAT)?;
            attributes.push(Attribute {
                index,
                name,
                content,
            });
        }
        cursor.end(WHAT)?;
        Ok(Parts {
            max_stack,
            max_locals,
            code,
            length,
            exceptions: (handlers, exceptions),
            attributes,
        })
    }
}

impl<'a, S: Sites> OfMethod<'_, '_, 'a, '_, S> {
    /// The attribute's new content; `None` where no site is counted.
    fn code(&mut self) -> Result<Option<Vec<u8>>, Reason> {
        let parts = Parts::read(self.method.code, &self.file.pool)?;
        let mut allocations = Vec::new();
        for instruction in Instructions::of(parts.code) {
            let instruction = instruction?;
            let after = match instruction.opcode {
                NEW | NEWARRAY | ANEWARRAY | MULTIANEWARRAY => None,
                INVOKEVIRTUAL..=INVOKEDYNAMIC => match self.told(&instruction) {
                    None => continue,
                    told => told,
                },
                _ => continue,
            };
            allocations.push(Allocation { instruction, after });
        }
        if allocations.is_empty() {
            return Ok(None);
        }
        let mut lines = Lines::default();
        for attribute in &parts.attributes {
            if attribute.name == b"LineNumberTable" {
                lines.add(attribute.content)?;
            }
        }
        lines.sort();
        let mut calls = Calls {
            constants: self.constants,
            code: Vec::new(),
            stack: 0,
            locals: 0,
        };
        let mut numbered = Numbered {
            sites: self.sites,
            file: self.file,
            method: self.method,
            lines: &lines,
            counted: &mut self.rewritten.sites,
        };
        let mut inserted = Vec::new();
        for allocation in &allocations {
            let start = calls.code.len();
            numbered.call(allocation, parts.max_locals, &mut calls)?;
            let end = calls.code.len();
            if end > start {
                inserted.push(Inserted {
                    at: allocation.instruction.at,
                    start,
                    end,
                    after: allocation.after.is_some(),
                });
            }
            // What is inserted alone would be too long: nothing more has to be asked for.
            if end > LONGEST {
                return Err(Reason::TooLong);
            }
        }
        if inserted.is_empty() {
            return Ok(None);
        }
        let calls = (calls.code, calls.stack, calls.locals);
        self.moved(&parts, &inserted, &calls, &allocations)
            .map(Some)
    }

    /// What is told of what an instruction returns, if it calls something.
    fn told(&mut self, instruction: &Instruction<'a>) -> Option<After<'a>> {
        let by = [self.file.name, self.method.name, self.method.descriptor];
        let (call, class) = called(&self.file.pool, &self.file.bootstraps, by, instruction)?;
        After::of(self.sites.told(&call)?, &call, class)
    }

    fn moved(
        &mut self,
        parts: &Parts<'a>,
        inserted: &[Inserted],
        (calls, stack, locals): &(Vec<u8>, u16, u16),
        allocations: &[Allocation<'a>],
    ) -> Result<Vec<u8>, Reason> {
        let mut moved = Moved::new(parts.length);
        let mut next = inserted.iter().peekable();
        for instruction in Instructions::of(parts.code) {
            let instruction = instruction?;
            let (before, after) = match next.next_if(|i| i.at == instruction.at) {
                Some(i) if i.after => (0, i.end - i.start),
                Some(i) => (i.end - i.start, 0),
                None => (0, 0),
            };
            let placed = moved.place(&instruction, before, after);
            placed.ok_or(Reason::TooLong)?;
        }
        moved.finish().ok_or(Reason::TooLong)?;

        let max_stack = parts.max_stack.checked_add(*stack);
        let max_locals = parts.max_locals.checked_add(*locals);
        let mut out = Vec::new();
        out.extend(max_stack.ok_or(Reason::StackTooDeep)?.to_be_bytes());
        out.extend(max_locals.ok_or(Reason::TooManyLocals)?.to_be_bytes());
        let length = u32::try_from(moved.new_length()).map_err(|_| Reason::TooLong)?;
        out.extend(length.to_be_bytes());
        let start = out.len();
        let mut next = inserted.iter().peekable();
        for instruction in Instructions::of(parts.code) {
            let instruction = instruction?;
            let inserted = next.next_if(|i| i.at == instruction.at);
            let part = |i: &Inserted| calls.get(i.start..i.end).unwrap_or_default();
            out.extend(inserted.filter(|i| !i.after).map(part).unwrap_or_default());
            let at = out.len() - start;
            let place = Place {
                moved: &moved,
                at,
                offset: parts.code.offset() + instruction.at,
            };
            place.write(&instruction, &mut out)?;
            out.extend(inserted.filter(|i| i.after).map(part).unwrap_or_default());
        }

        let (handlers, table) = parts.exceptions;
        out.extend(handlers.to_be_bytes());
        out.extend(tables::exceptions(table, &moved)?);
        self.attributes(parts, &moved, allocations, &mut out)?;
        Ok(out)
    }

    fn attributes(
        &mut self,
        parts: &Parts<'a>,
        moved: &Moved,
        allocations: &[Allocation<'a>],
        out: &mut Vec<u8>,
    ) -> Result<(), Reason> {
        let is_new = |at: u16| {
            let found = allocations.binary_search_by_key(&usize::from(at), |a| a.instruction.at);
            let opcode = |i: usize| allocations.get(i).map(|a| a.instruction.opcode);
            found.is_ok_and(|i| opcode(i) == Some(NEW))
        };
        let mut kept = Vec::new();
        let mut framed = false;
        for attribute in &parts.attributes {
            let content = attribute.content;
            let new = match attribute.name {
                b"StackMapTable" if framed => {
                    return Err(Fault::Second("StackMapTable").at(content.offset()).into());
                }
                b"StackMapTable" => {
                    framed = true;
                    frames::moved(content, moved, is_new)?
                }
                b"LineNumberTable" => tables::lines(content, moved)?,
                b"LocalVariableTable" | b"LocalVariableTypeTable" => {
                    tables::variables(content, moved)?
                }
                b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                    tables::type_annotations(content, moved)?
                }
                name => {
                    self.rewritten.dropped.push(Dropped {
                        method: self.method.name,
                        descriptor: self.method.descriptor,
                        attribute: Name(name),
                    });
                    continue;
                }
            };
            kept.push((attribute.index, new));
        }
        // No more than there were.
        let count = u16::try_from(kept.len()).unwrap_or(u16::MAX);
        out.extend(count.to_be_bytes());
        for (index, content) in kept {
            out.extend(index.to_be_bytes());
            // At most a few bytes for each entry longer than before.
            let length = u32::try_from(content.len()).map_err(|_| Reason::TooLong)?;
            out.extend(length.to_be_bytes());
            out.extend(content);
        }
        Ok(())
    }
}

/// What gives sites their numbers.
struct Numbered<'n, 'f, 'a, S> {
    sites: &'n mut S,
    file: &'f ClassFile<'a>,
    method: &'f Method<'a>,
    lines: &'n Lines,
    counted: &'n mut Vec<Counted<'a>>,
}

impl<'a, S: Sites> Numbered<'_, '_, 'a, S> {
    fn number(&mut self, at: usize, kind: Kind, class: ClassName<'a>) -> Option<i32> {
        // Code is shorter than 64 KB.
        let bytecode = u16::try_from(at).ok()?;
        let site = Site {
            method: self.method.name,
            descriptor: self.method.descriptor,
            bytecode,
            line: self.lines.at(bytecode),
            kind,
            class,
        };
        let number = self.sites.number(self.file.name, &site)?;
        self.counted.push(Counted { number, site });
        Some(number)
    }

    /// Writes the call for an allocation.
    fn call(
        &mut self,
        allocation: &Allocation<'a>,
        max_locals: u16,
        calls: &mut Calls<'_, '_>,
    ) -> Result<(), Reason> {
        let at = allocation.instruction.at;
        if let Some(after) = allocation.after {
            return self.after(at, &after, calls);
        }
        let offset = self.method.code.offset() + 8 + at;
        let constant = |a, b| self.file.pool.class(u16::from_be_bytes([a, b]));
        let class = match *allocation.instruction.bytes {
            [NEW, a, b] => {
                let class = ClassName::named(constant(a, b)?);
                if let Some(number) = self.number(at, Kind::Object, class) {
                    calls.object(number)?;
                }
                return Ok(());
            }
            [NEWARRAY, kind] => {
                let class = primitives(kind).ok_or_else(|| Fault::ArrayKind(kind).at(offset))?;
                ClassName::named(class)
            }
            [ANEWARRAY, a, b] => ClassName::array_of(constant(a, b)?),
            [MULTIANEWARRAY, a, b, sizes] => {
                let class = constant(a, b)?;
                let brackets = class.iter().take_while(|&&c| c == b'[').count();
                if sizes == 0 || brackets < usize::from(sizes) {
                    return Err(Fault::Sizes(sizes).at(offset).into());
                }
                if sizes > 1 {
                    let mut numbers = Vec::new();
                    for level in 0..sizes {
                        let class = class.get(usize::from(level)..).unwrap_or_default();
                        let class = ClassName::named(class);
                        numbers.push(self.number(at, Kind::Level(level), class));
                    }
                    return calls.levels(&numbers, max_locals);
                }
                ClassName::named(class)
            }
            _ => return Ok(()),
        };
        if let Some(number) = self.number(at, Kind::Array, class) {
            calls.array(number)?;
        }
        Ok(())
    }

    /// Writes what follows a call.
    fn after(
        &mut self,
        at: usize,
        after: &After<'a>,
        calls: &mut Calls<'_, '_>,
    ) -> Result<(), Reason> {
        let kind = match after.told {
            Told::Object(_) => Kind::Object,
            Told::Array => Kind::Array,
            Told::Returned { mark, .. } => Kind::Returned(mark),
        };
        let Some(number) = self.number(at, kind, after.class) else {
            return Ok(());
        };
        match after.told {
            Told::Object(_) => calls.after_object(number)?,
            Told::Array => calls.after_array(number, after.cast)?,
            Told::Returned { hook, .. } => calls.after(number, hook)?,
        }
        Ok(())
    }
}

/// The class of arrays of primitives, by `newarray`'s number for it.
fn primitives(kind: u8) -> Option<&'static [u8]> {
    Some(match kind {
        4 => b"[Z",
        5 => b"[C",
        6 => b"[F",
        7 => b"[D",
        8 => b"[B",
        9 => b"[S",
        10 => b"[I",
        11 => b"[J",
        _ => return None,
    })
}

/// Where an instruction is written.
struct Place<'m> {
    moved: &'m Moved,
    /// In the new code.
    at: usize,
    /// In the file that was read.
    offset: usize,
}

impl Place<'_> {
    fn write(&self, instruction: &Instruction<'_>, out: &mut Vec<u8>) -> Result<(), Reason> {
        match instruction.form {
            Form::Plain => out.extend(instruction.bytes),
            Form::Jump(distance) => {
                let new = self.distance(instruction.at, distance.into())?;
                let too_far = || Reason::JumpTooFar(u16::try_from(instruction.at).unwrap_or(0));
                let new = i16::try_from(new).map_err(|_| too_far())?;
                out.push(instruction.opcode);
                out.extend(new.to_be_bytes());
            }
            Form::WideJump(distance) => {
                out.push(instruction.opcode);
                out.extend(self.distance(instruction.at, distance)?.to_be_bytes());
            }
            Form::Switch(default, cases) => {
                out.push(instruction.opcode);
                out.extend([0; 3].iter().take(padding(self.at)));
                out.extend(self.distance(instruction.at, default)?.to_be_bytes());
                let (head, cases, key) = match cases {
                    Cases::Table(head, cases) => (head, cases, 0),
                    Cases::Lookup(head, cases) => (head, cases, 4),
                };
                out.extend(head);
                for case in cases.chunks_exact(key + 4) {
                    let (key, distance) = case.split_at(key);
                    out.extend(key);
                    let distance = Cursor::new(distance, self.offset).i32("the code")?;
                    out.extend(self.distance(instruction.at, distance)?.to_be_bytes());
                }
            }
        }
        Ok(())
    }

    /// The distance to where an old one leads.
    fn distance(&self, old_at: usize, distance: i32) -> Result<i32, Damage> {
        let old_at = i64::try_from(old_at).unwrap_or(i64::MAX);
        let to = self
            .moved
            .target(old_at + i64::from(distance), self.offset)?;
        // Both are below 65,536.
        let at = i32::try_from(self.at).unwrap_or(i32::MAX);
        Ok(i32::from(to) - at)
    }
}
