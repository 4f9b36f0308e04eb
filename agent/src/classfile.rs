//! Just enough of the class file format to define the agent's own classes.
//!
//! Major version 49 (Java 5): every JVM reads it, and its verifier infers types, so that no stack
//! maps are needed.

pub(crate) mod op;

use std::collections::HashMap;

const MAJOR: u16 = 49;
pub(crate) const PUBLIC: u16 = 0x01;
pub(crate) const FINAL: u16 = 0x10;
pub(crate) const STATIC: u16 = 0x08;
pub(crate) const SUPER: u16 = 0x20;
pub(crate) const SYNTHETIC: u16 = 0x1000;

const UTF8: u8 = 1;
const LONG: u8 = 5;
const CLASS: u8 = 7;
const STRING: u8 = 8;
const FIELD: u8 = 9;
const METHOD: u8 = 10;
const NAME_AND_TYPE: u8 = 12;

/// The constant pool; equal constants are stored once.
#[derive(Default)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
    known: HashMap<Vec<u8>, u16>,
    /// Places that are taken.
    used: u16,
}

impl Pool {
    fn add(&mut self, constant: Vec<u8>) -> u16 {
        *self.known.entry(constant).or_insert_with_key(|constant| {
            self.bytes.extend_from_slice(constant);
            let place = self.used + 1;
            // A long takes two places.
            self.used = place + u16::from(constant.first() == Some(&LONG));
            place
        })
    }

    pub(crate) fn long(&mut self, value: i64) -> u16 {
        let mut constant = vec![LONG];
        constant.extend(value.to_be_bytes());
        self.add(constant)
    }

    pub(crate) fn string(&mut self, text: &str) -> u16 {
        let mut constant = vec![STRING];
        constant.extend(self.text(text).to_be_bytes());
        self.add(constant)
    }

    fn pair(&mut self, tag: u8, first: u16, second: u16) -> u16 {
        let mut constant = vec![tag];
        constant.extend(first.to_be_bytes());
        constant.extend(second.to_be_bytes());
        self.add(constant)
    }

    pub(crate) fn text(&mut self, text: &str) -> u16 {
        let mut constant = vec![UTF8];
        constant.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        constant.extend_from_slice(text.as_bytes());
        self.add(constant)
    }

    pub(crate) fn class(&mut self, name: &str) -> u16 {
        let mut constant = vec![CLASS];
        constant.extend(self.text(name).to_be_bytes());
        self.add(constant)
    }

    fn member(&mut self, tag: u8, class: &str, name: &str, descriptor: &str) -> u16 {
        let class = self.class(class);
        let (name, descriptor) = (self.text(name), self.text(descriptor));
        let name_and_type = self.pair(NAME_AND_TYPE, name, descriptor);
        self.pair(tag, class, name_and_type)
    }

    pub(crate) fn field(&mut self, class: &str, name: &str, descriptor: &str) -> u16 {
        self.member(FIELD, class, name, descriptor)
    }

    pub(crate) fn method(&mut self, class: &str, name: &str, descriptor: &str) -> u16 {
        self.member(METHOD, class, name, descriptor)
    }
}

/// Instructions, with jumps to labels that are placed later.
#[derive(Default)]
pub(crate) struct Code {
    bytes: Vec<u8>,
    /// Where a jump's instruction and its offset stand, and the label it goes to.
    jumps: Vec<(usize, usize)>,
    labels: Vec<usize>,
    /// From and to where exceptions of all kinds are handled, and where, by label.
    handlers: Vec<[usize; 3]>,
}

impl Code {
    pub(crate) fn op(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// An instruction with an index into the pool.
    pub(crate) fn with(&mut self, opcode: u8, index: u16) -> &mut Self {
        self.bytes.push(opcode);
        self.bytes.extend(index.to_be_bytes());
        self
    }

    pub(crate) fn label(&mut self) -> usize {
        self.labels.push(0);
        self.labels.len() - 1
    }

    pub(crate) fn place(&mut self, label: usize) -> &mut Self {
        self.labels[label] = self.bytes.len();
        self
    }

    pub(crate) fn jump(&mut self, opcode: u8, label: usize) -> &mut Self {
        self.jumps.push((self.bytes.len(), label));
        self.with(opcode, 0)
    }

    /// What is thrown from one label to another goes to a third.
    pub(crate) fn handle(&mut self, from: usize, to: usize, handler: usize) -> &mut Self {
        self.handlers.push([from, to, handler]);
        self
    }

    /// The exception table, without its count.
    fn exceptions(&self) -> Vec<u8> {
        let place = |label: &usize| u16::try_from(self.labels[*label]).unwrap_or(u16::MAX);
        let entry = |labels: &[usize; 3]| {
            let [from, to, handler] = labels.each_ref().map(place);
            [from, to, handler, 0].map(u16::to_be_bytes).concat()
        };
        self.handlers.iter().flat_map(entry).collect()
    }

    fn finish(mut self) -> Vec<u8> {
        for (at, label) in self.jumps {
            let distance = self.labels[label].wrapping_sub(at);
            let low = distance.to_be_bytes();
            self.bytes[at + 1..at + 3].copy_from_slice(&low[low.len() - 2..]);
        }
        self.bytes
    }
}

/// A class being put together.
pub(crate) struct ClassFile {
    pub(crate) pool: Pool,
    access: u16,
    name: String,
    superclass: String,
    fields: Vec<u8>,
    field_count: u16,
    methods: Vec<u8>,
    method_count: u16,
}

impl ClassFile {
    pub(crate) fn new(access: u16, name: &str, superclass: &str) -> Self {
        Self {
            access,
            pool: Pool::default(),
            name: name.to_owned(),
            superclass: superclass.to_owned(),
            fields: Vec::new(),
            field_count: 0,
            methods: Vec::new(),
            method_count: 0,
        }
    }

    pub(crate) fn field(&mut self, access: u16, name: &str, descriptor: &str) {
        let (name, descriptor) = (self.pool.text(name), self.pool.text(descriptor));
        for part in [access, name, descriptor, 0] {
            self.fields.extend(part.to_be_bytes());
        }
        self.field_count += 1;
    }

    pub(crate) fn method(
        &mut self,
        access: u16,
        (name, descriptor): (&str, &str),
        (stack, locals): (u16, u16),
        code: Code,
    ) {
        let (name, descriptor) = (self.pool.text(name), self.pool.text(descriptor));
        let attribute = self.pool.text("Code");
        let exceptions = code.exceptions();
        let code = code.finish();
        for part in [access, name, descriptor, 1, attribute] {
            self.methods.extend(part.to_be_bytes());
        }
        let length = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
        self.methods
            .extend(length(code.len() + exceptions.len() + 12));
        self.methods.extend(stack.to_be_bytes());
        self.methods.extend(locals.to_be_bytes());
        self.methods.extend(length(code.len()));
        self.methods.extend(code);
        let count = u16::try_from(exceptions.len() / 8).unwrap_or(u16::MAX);
        self.methods.extend(count.to_be_bytes());
        self.methods.extend(exceptions);
        // No attributes.
        self.methods.extend([0; 2]);
        self.method_count += 1;
    }

    /// Adds a method whose code `write` puts together.
    pub(crate) fn write(
        &mut self,
        access: u16,
        named: (&str, &str),
        sizes: (u16, u16),
        write: &dyn Fn(&mut Body<'_>),
    ) {
        let mut body = Body {
            class: self,
            code: Code::default(),
        };
        write(&mut body);
        let code = body.code;
        self.method(access, named, sizes, code);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let this = self.pool.class(&self.name);
        let superclass = self.pool.class(&self.superclass);
        let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe];
        let put = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_be_bytes());
        put(&mut bytes, 0);
        put(&mut bytes, MAJOR);
        put(&mut bytes, self.pool.used + 1);
        bytes.extend(&self.pool.bytes);
        for part in [self.access | FINAL | SUPER | SYNTHETIC, this, superclass, 0] {
            put(&mut bytes, part);
        }
        put(&mut bytes, self.field_count);
        bytes.extend(&self.fields);
        put(&mut bytes, self.method_count);
        bytes.extend(&self.methods);
        put(&mut bytes, 0);
        bytes
    }
}

/// A method of a class that is being put together.
pub(crate) struct Body<'c> {
    pub(crate) class: &'c mut ClassFile,
    pub(crate) code: Code,
}

impl Body<'_> {
    pub(crate) fn op(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.op(bytes);
        self
    }

    /// A constant onto the stack.
    pub(crate) fn long(&mut self, value: i64) -> &mut Self {
        let constant = self.class.pool.long(value);
        self.code.with(op::LDC2_W, constant);
        self
    }

    /// A field of the class itself.
    pub(crate) fn field(&mut self, opcode: u8, (name, descriptor): (&str, &str)) -> &mut Self {
        let ClassFile {
            pool, name: this, ..
        } = &mut *self.class;
        let field = pool.field(this, name, descriptor);
        self.code.with(opcode, field);
        self
    }

    pub(crate) fn call(
        &mut self,
        opcode: u8,
        (class, name, descriptor): (&str, &str, &str),
    ) -> &mut Self {
        let method = self.class.pool.method(class, name, descriptor);
        self.code.with(opcode, method);
        self
    }

    /// Calls a method of the class itself.
    pub(crate) fn own(&mut self, opcode: u8, (name, descriptor): (&str, &str)) -> &mut Self {
        let ClassFile {
            pool, name: this, ..
        } = &mut *self.class;
        let method = pool.method(this, name, descriptor);
        self.code.with(opcode, method);
        self
    }

    pub(crate) fn with_class(&mut self, opcode: u8, class: &str) -> &mut Self {
        let class = self.class.pool.class(class);
        self.code.with(opcode, class);
        self
    }

    pub(crate) fn jump(&mut self, opcode: u8, label: usize) -> &mut Self {
        self.code.jump(opcode, label);
        self
    }

    pub(crate) fn place(&mut self, label: usize) -> &mut Self {
        self.code.place(label);
        self
    }
}
