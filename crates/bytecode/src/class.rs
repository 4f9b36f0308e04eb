//! Reads the layout of a class file.

use std::ops::Range;

use crate::calls::Bootstraps;
use crate::cursor::Cursor;
use crate::error::{Damage, Fault};
use crate::pool::Pool;
use crate::site::Name;

const MAGIC: u32 = 0xcafe_babe;
/// The byte range in a class file that contains the number of constants.
pub(crate) const POOL_COUNT: Range<usize> = 8..10;

/// A class file that was read to its end without an error.
pub(crate) struct ClassFile<'a> {
    pub(crate) pool: Pool<'a>,
    /// The offset of the end of the constant pool.
    pub(crate) pool_end: usize,
    pub(crate) name: Name<'a>,
    /// The methods with code.
    pub(crate) methods: Vec<Method<'a>>,
    /// The bootstrap methods of `invokedynamic`.
    pub(crate) bootstraps: Bootstraps<'a>,
}

/// A method with code.
pub(crate) struct Method<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) descriptor: Name<'a>,
    /// The content of the attribute `Code`.
    pub(crate) code: Cursor<'a>,
    /// The byte range of `code` in the file. The four bytes before this range contain its length.
    pub(crate) place: Range<usize>,
}

impl<'a> ClassFile<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        const WHAT: &str = "the class";
        let mut cursor = Cursor::new(bytes, 0);
        if cursor.u32(WHAT)? != MAGIC {
            return Err(Fault::Magic.at(0));
        }
        let _version = cursor.u32(WHAT)?;
        let pool = Pool::read(&mut cursor)?;
        let pool_end = cursor.offset();
        let _access = cursor.u16(WHAT)?;
        let name = Name(pool.class(cursor.u16(WHAT)?)?);
        let _super = cursor.u16(WHAT)?;
        let interfaces = usize::from(cursor.u16("the interfaces")?);
        cursor.take(2 * interfaces, "the interfaces")?;
        for _ in 0..cursor.u16("the fields")? {
            cursor.take(6, "a field")?;
            skip_attributes(&mut cursor, "a field's attributes")?;
        }
        let mut methods = Vec::new();
        for _ in 0..cursor.u16("the methods")? {
            methods.extend(method(&mut cursor, &pool)?);
        }
        let mut bootstraps = Bootstraps::default();
        for _ in 0..cursor.u16("the class's attributes")? {
            const WHAT: &str = "the class's attributes";
            let index = cursor.u16(WHAT)?;
            let length = cursor.length(WHAT)?;
            let content = cursor.take(length, WHAT)?;
            if pool.utf8(index) == Ok(b"BootstrapMethods") {
                bootstraps = Bootstraps::read(content);
            }
        }
        cursor.end(WHAT)?;
        Ok(ClassFile {
            pool,
            pool_end,
            name,
            methods,
            bootstraps,
        })
    }
}

fn skip_attributes(cursor: &mut Cursor<'_>, what: &'static str) -> Result<(), Damage> {
    for _ in 0..cursor.u16(what)? {
        cursor.u16(what)?;
        let length = cursor.length(what)?;
        cursor.take(length, what)?;
    }
    Ok(())
}

fn method<'a>(cursor: &mut Cursor<'a>, pool: &Pool<'a>) -> Result<Option<Method<'a>>, Damage> {
    const WHAT: &str = "a method";
    let _access = cursor.u16(WHAT)?;
    let name = Name(pool.utf8(cursor.u16(WHAT)?)?);
    let descriptor = Name(pool.utf8(cursor.u16(WHAT)?)?);
    let mut found = None;
    for _ in 0..cursor.u16(WHAT)? {
        let attribute = pool.utf8(cursor.u16(WHAT)?)?;
        let length = cursor.length(WHAT)?;
        let start = cursor.offset();
        let code = cursor.part(length, WHAT)?;
        if attribute == b"Code" {
            if found.is_some() {
                return Err(Fault::Second("Code").at(start));
            }
            found = Some(Method {
                name,
                descriptor,
                code,
                place: start..start + length,
            });
        }
    }
    Ok(found)
}
