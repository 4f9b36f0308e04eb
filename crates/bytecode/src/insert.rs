//! Generates the instructions that call hooks.

use crate::error::Reason;
use crate::pool::{Additions, Full, Mark};
use crate::rewrite::Hooks;

const LCONST_1: u8 = 0x0a;
const ICONST_0: i32 = 0x03;
const BIPUSH: u8 = 0x10;
const SIPUSH: u8 = 0x11;
const LDC: u8 = 0x12;
const LDC_W: u8 = 0x13;
const ILOAD: u8 = 0x15;
const ISTORE: u8 = 0x36;
const POP2: u8 = 0x58;
const DUP: u8 = 0x59;
const LMUL: u8 = 0x69;
const I2L: u8 = 0x85;
const INVOKESTATIC: u8 = 0xb8;
const ARRAYLENGTH: u8 = 0xbe;
const CHECKCAST: u8 = 0xc0;
const WIDE: u8 = 0xc4;

impl From<Full> for Reason {
    fn from(_: Full) -> Self {
        Reason::PoolFull
    }
}

/// A hook that is called before an allocation.
#[derive(Clone, Copy)]
enum Hook {
    Object,
    Array,
    Level,
}

/// Indexes of the constant-pool entries for hooks. An entry is created when its hook is first needed.
#[derive(Clone, Copy, Default)]
struct Named {
    class: Option<u16>,
    /// Indexed by [`Hook`].
    methods: [Option<u16>; 3],
    /// A cache of the two most recently used hooks that receive results of calls. Each entry has the hook's name and
    /// the index of its entry in the constant pool.
    returned: [Option<(&'static str, u16)>; 2],
}

/// The state of [`Constants`] before a method was rewritten. If the method stays unchanged after all, this state is
/// restored.
#[derive(Clone, Copy)]
pub(crate) struct Before(Named, Mark);

/// The constants that are added to a class so that it can call hooks.
pub(crate) struct Constants<'h> {
    hooks: &'h Hooks<'h>,
    named: Named,
    pub(crate) added: Additions,
}

impl<'h> Constants<'h> {
    pub(crate) fn new(hooks: &'h Hooks<'h>, added: Additions) -> Self {
        Constants {
            hooks,
            named: Named::default(),
            added,
        }
    }

    /// Returns the current state. [`Constants::rollback`] restores it.
    pub(crate) fn checkpoint(&self) -> Before {
        Before(self.named, self.added.mark())
    }

    /// Removes all constants that were added since [`Constants::checkpoint`] returned `before`.
    pub(crate) fn rollback(&mut self, before: Before) {
        self.named = before.0;
        self.added.rollback(before.1);
    }

    fn hook(&mut self, hook: Hook) -> Result<u16, Full> {
        if let Some(known) = self.named.methods[hook as usize] {
            return Ok(known);
        }
        let (name, descriptor) = match hook {
            Hook::Object => (self.hooks.object, "(I)V"),
            Hook::Array => (self.hooks.array, "(II)V"),
            Hook::Level => (self.hooks.level, "(JII)J"),
        };
        let method = self.method(name, descriptor)?;
        self.named.methods[hook as usize] = Some(method);
        Ok(method)
    }

    /// Returns the index of the constant-pool entry for a hook that receives the result of a call.
    fn returned(&mut self, name: &'static str) -> Result<u16, Full> {
        let known = self.named.returned.iter().flatten();
        if let Some((_, method)) = known.clone().find(|(known, _)| *known == name) {
            return Ok(*method);
        }
        let method = self.method(name, "(Ljava/lang/Object;I)V")?;
        self.named.returned = [Some((name, method)), self.named.returned[0]];
        Ok(method)
    }

    fn method(&mut self, name: &str, descriptor: &str) -> Result<u16, Full> {
        let class = match self.named.class {
            Some(class) => class,
            None => self.added.class(self.hooks.owner)?,
        };
        self.named.class = Some(class);
        self.added.method(class, name, descriptor)
    }
}

/// Code that is being generated, and the space that it needs.
pub(crate) struct Calls<'c, 'h> {
    pub(crate) constants: &'c mut Constants<'h>,
    pub(crate) code: Vec<u8>,
    /// Number of stack slots that the new code needs in addition to those of the method.
    pub(crate) stack: u16,
    /// Number of local variables that the new code needs in addition to those of the method.
    pub(crate) locals: u16,
}

impl Calls<'_, '_> {
    /// Generates the hook call that precedes a `new`. The call needs no additional stack slot, because the site number
    /// uses the slot that the new object takes later.
    pub(crate) fn object(&mut self, site: i32) -> Result<(), Full> {
        let hook = self.constants.hook(Hook::Object)?;
        self.push(site)?;
        self.call(hook);
        Ok(())
    }

    /// Generates the hook call that precedes the creation of a one-dimensional array. Before the call, the array's
    /// length is on the stack.
    pub(crate) fn array(&mut self, site: i32) -> Result<(), Full> {
        let hook = self.constants.hook(Hook::Array)?;
        self.code.push(DUP);
        self.push(site)?;
        self.call(hook);
        self.stack = self.stack.max(2);
        Ok(())
    }

    /// Generates the hook call to insert after a call that allocates an object.
    pub(crate) fn after_object(&mut self, site: i32) -> Result<(), Full> {
        self.object(site)?;
        // The site number is on the stack in addition to the returned object.
        self.stack = self.stack.max(1);
        Ok(())
    }

    /// Generates the hook call to insert after a call that returns an array. `cast` is the constant of the array's
    /// class. It is needed if the descriptor of the call does not name this class.
    pub(crate) fn after_array(&mut self, site: i32, cast: Option<u16>) -> Result<(), Full> {
        let hook = self.constants.hook(Hook::Array)?;
        self.code.push(DUP);
        if let Some(class) = cast {
            self.code.push(CHECKCAST);
            self.code.extend(class.to_be_bytes());
        }
        self.code.push(ARRAYLENGTH);
        self.push(site)?;
        self.call(hook);
        self.stack = self.stack.max(2);
        Ok(())
    }

    /// Generates the call of a hook that receives the object which another call has returned.
    pub(crate) fn after(&mut self, site: i32, hook: &'static str) -> Result<(), Full> {
        let hook = self.constants.returned(hook)?;
        self.code.push(DUP);
        self.push(site)?;
        self.call(hook);
        self.stack = self.stack.max(2);
        Ok(())
    }

    /// Generates the code before a `multianewarray`. This code computes the number of arrays in each dimension. `sites`
    /// has one entry for each dimension. If the entry is a site number, the code calls the hook `level`. The hook
    /// counts the arrays of this dimension, and multiplies their number by their length. If the entry is `None`, the
    /// code only multiplies. The code stores the lengths in local variables from `first` on, which no stack map frame
    /// uses.
    ///
    /// The generated code for two lengths `a` and `b`, which are on the stack:
    ///
    /// ```text
    /// istore first+1, istore first          save b and a
    /// lconst_1                              count = 1
    /// iload first,   push site 0, level     count = level(count, a, site 0)
    /// iload first+1, push site 1, level     count = level(count, b, site 1)
    /// pop2                                  drop count
    /// iload first, iload first+1            a and b are on the stack again
    /// multianewarray                        the original instruction
    /// ```
    pub(crate) fn levels(&mut self, sites: &[Option<i32>], first: u16) -> Result<(), Reason> {
        let Some(last) = sites.iter().rposition(Option::is_some) else {
            return Ok(());
        };
        let count = u16::try_from(sites.len()).map_err(|_| Reason::TooManyLocals)?;
        let end = first.checked_add(count).ok_or(Reason::TooManyLocals)?;
        let hook = self.constants.hook(Hook::Level)?;
        (first..end).rev().for_each(|slot| self.local(ISTORE, slot));
        self.code.push(LCONST_1);
        for (site, slot) in sites[..=last].iter().zip(first..end) {
            self.local(ILOAD, slot);
            match site {
                Some(site) => {
                    self.push(*site)?;
                    self.call(hook);
                }
                None => self.code.extend([I2L, LMUL]),
            }
        }
        self.code.push(POP2);
        (first..end).for_each(|slot| self.local(ILOAD, slot));
        // The code takes the `count` lengths off the stack. Then each call of a hook needs four slots for one `long`
        // and two `int`s.
        self.stack = self.stack.max(4_u16.saturating_sub(count));
        self.locals = self.locals.max(count);
        Ok(())
    }

    fn local(&mut self, opcode: u8, slot: u16) {
        match u8::try_from(slot) {
            Ok(slot) => self.code.extend([opcode, slot]),
            Err(_) => {
                self.code.extend([WIDE, opcode]);
                self.code.extend(slot.to_be_bytes());
            }
        }
    }

    fn call(&mut self, hook: u16) {
        self.code.push(INVOKESTATIC);
        self.code.extend(hook.to_be_bytes());
    }

    fn push(&mut self, number: i32) -> Result<(), Full> {
        self.code.push_number(number, &mut self.constants.added)
    }
}

/// A buffer of code. It can append an instruction that pushes a number.
pub(crate) trait Pushed {
    fn push_number(&mut self, number: i32, added: &mut Additions) -> Result<(), Full>;
}

impl Pushed for Vec<u8> {
    fn push_number(&mut self, number: i32, added: &mut Additions) -> Result<(), Full> {
        if let Ok(opcode @ 0x02..=0x08) = u8::try_from(number.saturating_add(ICONST_0)) {
            self.push(opcode);
        } else if let Ok(byte) = i8::try_from(number) {
            self.push(BIPUSH);
            self.extend(byte.to_be_bytes());
        } else if let Ok(short) = i16::try_from(number) {
            self.push(SIPUSH);
            self.extend(short.to_be_bytes());
        } else {
            let constant = added.integer(number)?;
            match u8::try_from(constant) {
                Ok(constant) => self.extend([LDC, constant]),
                Err(_) => {
                    self.push(LDC_W);
                    self.extend(constant.to_be_bytes());
                }
            }
        }
        Ok(())
    }
}
