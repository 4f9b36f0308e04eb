//! Errors: damage in class files, and reasons why a method is not rewritten.

/// An error that prevents any change to a class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not a class file that this crate can read.
    #[error("{0}")]
    Damaged(#[from] Damage),
    /// The name of a hook or of the class with the hooks is empty, too long for a class file, or not plain ASCII.
    #[error("`{0}` cannot be the name of the class or method that inserted code calls")]
    HookName(String),
}

/// Damage in a class file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {fault}")]
pub struct Damage {
    /// The offset of the damage, in bytes from the start of the file.
    pub offset: usize,
    /// The kind of damage.
    pub fault: Fault,
}

/// A kind of damage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the error messages describe the variants")]
pub enum Fault {
    #[error("a class file must begin with 0xCAFEBABE")]
    Magic,
    #[error("the class file ends inside {0}")]
    Short(&'static str),
    #[error("{0} extra bytes follow the end of {1}")]
    Trailing(usize, &'static str),
    #[error("a constant has the unknown kind {0}")]
    Tag(u8),
    #[error("constant {index} is not {wanted}")]
    Constant { index: u16, wanted: &'static str },
    #[error("{0} occurs twice")]
    Second(&'static str),
    #[error("a method has the impossible code length of {0} bytes")]
    CodeLength(u32),
    #[error("unknown instruction {0:#04x}")]
    Opcode(u8),
    #[error("a switch instruction has the impossible range of keys from {low} to {high}")]
    Switch { low: i32, high: i32 },
    #[error("a new array has the unknown element type {0}")]
    ArrayKind(u8),
    #[error("an instruction creates an array with the impossible number of {0} dimensions")]
    Sizes(u8),
    #[error("no instruction begins at byte {0} of the code")]
    Target(i64),
    #[error("no instruction `new` is at byte {0} of the code")]
    NotNew(u32),
    #[error("a stack map frame has the unknown kind {0}")]
    Frame(u8),
    #[error("a stack map frame has the unknown type {0}")]
    FrameType(u8),
    #[error("a type annotation has the unknown target {0:#04x}")]
    AnnotationTarget(u8),
    #[error("an annotation value has the unknown kind {0:#04x}")]
    AnnotationValue(u8),
}

impl Fault {
    pub(crate) fn at(self, offset: usize) -> Damage {
        Damage {
            offset,
            fault: self,
        }
    }
}

/// The reason why a method is not rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The code would be longer than a class file allows.
    #[error("with the inserted code, the method would be longer than 65,535 bytes")]
    TooLong,
    /// The distance of a jump would not fit into a signed number of 16 bits.
    #[error("with the inserted code, the jump at byte {0} would be too long")]
    JumpTooFar(u16),
    /// The stack depth would not fit into 16 bits.
    #[error(
        "with the inserted code, the method would need an operand stack of more than 65,535 slots"
    )]
    StackTooDeep,
    /// The number of local variables would not fit into 16 bits.
    #[error("with the inserted code, the method would have too many local variables")]
    TooManyLocals,
    /// The number of constants would not fit into 16 bits.
    #[error("the constant pool of the class is full")]
    PoolFull,
    /// A part of the method cannot be read.
    #[error("heapdiff cannot read the method: {0}")]
    Damaged(#[from] Damage),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_own_message() {
        let (low, high) = (3, 1);
        let told = [
            (Fault::Magic, "a class file must begin with 0xCAFEBABE"),
            (
                Fault::Short("a method"),
                "the class file ends inside a method",
            ),
            (
                Fault::Trailing(2, "the class"),
                "2 extra bytes follow the end of the class",
            ),
            (Fault::Tag(2), "a constant has the unknown kind 2"),
            (
                Fault::Constant {
                    index: 9,
                    wanted: "a class",
                },
                "constant 9 is not a class",
            ),
            (Fault::Second("Code"), "Code occurs twice"),
            (
                Fault::CodeLength(0),
                "a method has the impossible code length of 0 bytes",
            ),
            (Fault::Opcode(0xca), "unknown instruction 0xca"),
            (
                Fault::Switch { low, high },
                "a switch instruction has the impossible range of keys from 3 to 1",
            ),
            (
                Fault::ArrayKind(3),
                "a new array has the unknown element type 3",
            ),
            (
                Fault::Sizes(0),
                "an instruction creates an array with the impossible number of 0 dimensions",
            ),
            (
                Fault::Target(-1),
                "no instruction begins at byte -1 of the code",
            ),
            (
                Fault::NotNew(1),
                "no instruction `new` is at byte 1 of the code",
            ),
            (
                Fault::Frame(128),
                "a stack map frame has the unknown kind 128",
            ),
            (
                Fault::FrameType(9),
                "a stack map frame has the unknown type 9",
            ),
            (
                Fault::AnnotationTarget(0x4c),
                "a type annotation has the unknown target 0x4c",
            ),
            (
                Fault::AnnotationValue(0),
                "an annotation value has the unknown kind 0x00",
            ),
        ];
        for (fault, _) in &told {
            let text = fault.to_string();
            let fits = told.iter().filter(|(_, said)| text == *said);
            assert!(fits.map(|(of, _)| of).eq([fault]), "{text}");
        }
        let damage = Fault::Magic.at(0);
        let reasons = [
            (
                Reason::TooLong,
                "with the inserted code, the method would be longer than 65,535 bytes".to_owned(),
            ),
            (
                Reason::JumpTooFar(7),
                "with the inserted code, the jump at byte 7 would be too long".to_owned(),
            ),
            (
                Reason::StackTooDeep,
                "with the inserted code, the method would need an operand stack of more than 65,535 slots".to_owned(),
            ),
            (
                Reason::TooManyLocals,
                "with the inserted code, the method would have too many local variables".to_owned(),
            ),
            (
                Reason::PoolFull,
                "the constant pool of the class is full".to_owned(),
            ),
            (
                Reason::Damaged(damage.clone()),
                format!("heapdiff cannot read the method: {damage}"),
            ),
        ];
        for (reason, text) in reasons {
            assert_eq!(reason.to_string(), text);
        }
        assert_eq!(
            Error::Damaged(damage.clone()).to_string(),
            damage.to_string()
        );
        assert_eq!(
            damage.to_string(),
            "byte 0: a class file must begin with 0xCAFEBABE"
        );
        let name = Error::HookName("é".into()).to_string();
        assert_eq!(
            name,
            "`é` cannot be the name of the class or method that inserted code calls"
        );
    }
}
