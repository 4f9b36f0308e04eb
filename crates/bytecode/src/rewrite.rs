//! Rewrites a class file, method by method.

use crate::calls::{After, Call, INVOKEDYNAMIC, INVOKEVIRTUAL, Told, called};
use crate::class::{ClassFile, Method};
use crate::code::{ANEWARRAY, Instruction, Instructions, MULTIANEWARRAY, NEW, NEWARRAY};
use crate::error::{Error, Fault, Reason};
use crate::insert::{Calls, Constants};
use crate::longer::{self, Branches, Inserted, Longer, Parts};
use crate::moved::LONGEST;
use crate::pool::Additions;
use crate::site::{ClassName, Kind, Name, Site};
use crate::tables::Lines;

/// The hooks: static methods that the inserted code calls. Their class must be visible to every class loader. All names
/// are plain ASCII.
#[derive(Clone, Copy, Debug)]
pub struct Hooks<'h> {
    /// The class that contains the hooks, such as `a/b/Hooks`. This class itself is never rewritten.
    pub owner: &'h str,
    /// Name of the hook that is called before an object is allocated. Its descriptor is `(I)V`; the argument is the
    /// number of the site.
    pub object: &'h str,
    /// Name of the hook that is called before an array is allocated. Its descriptor is `(II)V`; the arguments are the
    /// array's length and the number of the site.
    pub array: &'h str,
    /// Name of the hook that is called before the arrays of one level of a multi-dimensional array are allocated. Its
    /// descriptor is `(JII)J`; the arguments are the number of arrays, their length and the number of the site. The
    /// hook must return the number of arrays multiplied by the length.
    pub level: &'h str,
}

/// Selects the allocation sites to count.
pub trait Sites {
    /// Returns true if allocations in this method may be counted.
    fn wants(&mut self, class: Name<'_>, method: Name<'_>, descriptor: Name<'_>) -> bool {
        let _ = (class, method, descriptor);
        true
    }

    /// Returns the hook to call after `call`. The hook is called only if the call's site gets a number. The default
    /// implementation returns no hook.
    fn hook_after(&mut self, call: &Call<'_>) -> Option<Told> {
        let _ = call;
        None
    }

    /// Returns the number of a site, or `None` to skip the site. Sites are visited in the order of the code. If a
    /// method later turns out to be unsuitable for rewriting, [`Rewritten`] contains no site of this method.
    fn number(&mut self, class: Name<'_>, site: &Site<'_>) -> Option<i32>;
}

/// A site whose allocations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    /// The site's number.
    pub number: i32,
    /// The site with this number.
    pub site: Site<'a>,
}

/// A method that stays unchanged, although it has, or may have, an instruction at which a hook should be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone<'a> {
    /// The method's name.
    pub method: Name<'a>,
    /// The method's descriptor.
    pub descriptor: Name<'a>,
    /// The reason why the method stays unchanged.
    pub reason: Reason,
}

/// An attribute of `Code` that was dropped. It is not in the specification, so it may have contained offsets of
/// instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<'a> {
    /// The method's name.
    pub method: Name<'a>,
    /// The method's descriptor.
    pub descriptor: Name<'a>,
    /// The attribute's name.
    pub attribute: Name<'a>,
}

/// The result of rewriting a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten<'a> {
    /// The class's name.
    pub class: Name<'a>,
    /// The new class file, or `None` if nothing changes.
    pub bytes: Option<Vec<u8>>,
    /// The sites whose allocations are counted, in the order of their methods and offsets.
    pub sites: Vec<Counted<'a>>,
    /// The methods that stay unchanged, although they have allocation sites or may have some.
    pub left_alone: Vec<LeftAlone<'a>>,
    /// The attributes of `Code` that were dropped.
    pub dropped: Vec<Dropped<'a>>,
}

/// Inserts a hook call before each allocation to which `sites` gives a number.
///
/// # Errors
/// Returns an error if the class cannot be read to its end, or if the name of a hook is invalid. The caller should then
/// leave the class unchanged.
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
        let before = constants.checkpoint();
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
            Ok(None) => constants.rollback(before),
            Err(reason) => {
                constants.rollback(before);
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
        rewritten.bytes = Some(longer::file(class, &file, &constants.added, &changes));
    }
    Ok(rewritten)
}

/// An instruction before or after which a hook may be called.
struct Allocation<'a> {
    instruction: Instruction<'a>,
    /// If the instruction is a call, the hook to call after it.
    after: Option<After<'a>>,
}

struct OfMethod<'o, 'f, 'a, 'h, S> {
    file: &'f ClassFile<'a>,
    method: &'f Method<'a>,
    sites: &'o mut S,
    constants: &'o mut Constants<'h>,
    rewritten: &'o mut Rewritten<'a>,
}

impl<'a, S: Sites> OfMethod<'_, '_, 'a, '_, S> {
    /// Returns the new content of the attribute `Code`, or `None` if no site is counted.
    fn code(&mut self) -> Result<Option<Vec<u8>>, Reason> {
        let parts = Parts::read(self.method.code, &self.file.pool)?;
        let mut allocations = Vec::new();
        for instruction in Instructions::new(parts.code) {
            let instruction = instruction?;
            let after = match instruction.opcode {
                NEW | NEWARRAY | ANEWARRAY | MULTIANEWARRAY => None,
                INVOKEVIRTUAL..=INVOKEDYNAMIC => match self.hook_after(&instruction) {
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
            // If the inserted calls alone are longer than [`LONGEST`], the method stays unchanged. Then the other
            // allocation sites of this method need no numbers.
            if end > LONGEST {
                return Err(Reason::TooLong);
            }
        }
        if inserted.is_empty() {
            return Ok(None);
        }
        let is_new = |a: &&Allocation<'_>| a.instruction.opcode == NEW;
        let news = allocations.iter().filter(is_new);
        let news: Vec<usize> = news.map(|a| a.instruction.at).collect();
        let longer = Longer {
            parts: &parts,
            inserted: &inserted,
            code: &calls.code,
            stack: calls.stack,
            locals: calls.locals,
            news: &news,
            branches: Branches::ToInserted,
        };
        let mut dropped = Vec::new();
        let code = longer.written(&mut dropped)?;
        self.dropped(dropped);
        Ok(Some(code))
    }

    /// Returns the hook to call after an instruction. Returns `None` if the instruction is not a call that has such a
    /// hook.
    fn hook_after(&mut self, instruction: &Instruction<'a>) -> Option<After<'a>> {
        let by = [self.file.name, self.method.name, self.method.descriptor];
        let (call, class) = called(&self.file.pool, &self.file.bootstraps, by, instruction)?;
        After::for_call(self.sites.hook_after(&call)?, &call, class)
    }

    fn dropped(&mut self, attributes: Vec<&'a [u8]>) {
        let (method, descriptor) = (self.method.name, self.method.descriptor);
        let told = attributes.into_iter().map(|name| Dropped {
            method,
            descriptor,
            attribute: Name(name),
        });
        self.rewritten.dropped.extend(told);
    }
}

/// Gives numbers to the sites of a method.
struct Numbered<'n, 'f, 'a, S> {
    sites: &'n mut S,
    file: &'f ClassFile<'a>,
    method: &'f Method<'a>,
    lines: &'n Lines,
    counted: &'n mut Vec<Counted<'a>>,
}

impl<'a, S: Sites> Numbered<'_, '_, 'a, S> {
    fn number(&mut self, at: usize, kind: Kind, class: ClassName<'a>) -> Option<i32> {
        // The offset fits into 16 bits, because code is shorter than 64 KB.
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

    /// Generates the hook call to insert before an allocation.
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

    /// Generates the hook call to insert after a call that allocates.
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

/// Returns the array class that a `newarray` instruction creates. `kind` is the code of the element type in the
/// instruction.
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
