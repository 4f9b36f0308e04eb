//! What is wrong with a class file, and where; why a method stays as it is.

/// Why nothing of a class is rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not a class file that we understand.
    #[error("{0}")]
    Damaged(#[from] Damage),
    /// A name of the hooks is empty, too long for a class file, or not plain ASCII.
    #[error("`{0}` cannot be the name of a hook")]
    HookName(String),
}

/// Something in a class file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {fault}")]
pub struct Damage {
    /// Where, in bytes from the start of the file.
    pub offset: usize,
    /// What.
    pub fault: Fault,
}

/// What is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Fault {
    #[error("it does not begin as a class file does")]
    Magic,
    #[error("it ends within {0}")]
    Short(&'static str),
    #[error("{0} bytes follow the end of {1}")]
    Trailing(usize, &'static str),
    #[error("a constant of kind {0}")]
    Tag(u8),
    #[error("constant {index} is not {wanted}")]
    Constant { index: u16, wanted: &'static str },
    #[error("a second {0}")]
    Second(&'static str),
    #[error("{0} bytes of code")]
    CodeLength(u32),
    #[error("an instruction {0:#04x}")]
    Opcode(u8),
    #[error("a switch from {low} to {high}")]
    Switch { low: i32, high: i32 },
    #[error("an array of kind {0}")]
    ArrayKind(u8),
    #[error("{0} sizes for an array")]
    Sizes(u8),
    #[error("no instruction begins at {0}")]
    Target(i64),
    #[error("no `new` at {0}")]
    NotNew(u32),
    #[error("a frame of kind {0}")]
    Frame(u8),
    #[error("a type of kind {0} in a frame")]
    FrameType(u8),
    #[error("a type annotation of kind {0:#04x}")]
    AnnotationTarget(u8),
    #[error("an annotation's value of kind {0:#04x}")]
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

/// Why a method stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Its code would be too long for a class file.
    #[error("it would get longer than 65,535 bytes")]
    TooLong,
    /// A jump's distance has 16 bits.
    #[error("the jump at {0} would get too long")]
    JumpTooFar(u16),
    /// The stack's depth has 16 bits.
    #[error("its stack would get too deep")]
    StackTooDeep,
    /// The number of locals has 16 bits.
    #[error("it would get too many locals")]
    TooManyLocals,
    /// The number of constants has 16 bits.
    #[error("the class has no room for more constants")]
    PoolFull,
    /// Something in it is not understood.
    #[error("it is not understood: {0}")]
    Damaged(#[from] Damage),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_told_as_what_it_is() {
        let (low, high) = (3, 1);
        let told = [
            (Fault::Magic, "it does not begin as a class file does"),
            (Fault::Short("a method"), "it ends within a method"),
            (
                Fault::Trailing(2, "the class"),
                "2 bytes follow the end of the class",
            ),
            (Fault::Tag(2), "a constant of kind 2"),
            (
                Fault::Constant {
                    index: 9,
                    wanted: "a class",
                },
                "constant 9 is not a class",
            ),
            (Fault::Second("Code"), "a second Code"),
            (Fault::CodeLength(0), "0 bytes of code"),
            (Fault::Opcode(0xca), "an instruction 0xca"),
            (Fault::Switch { low, high }, "a switch from 3 to 1"),
            (Fault::ArrayKind(3), "an array of kind 3"),
            (Fault::Sizes(0), "0 sizes for an array"),
            (Fault::Target(-1), "no instruction begins at -1"),
            (Fault::NotNew(1), "no `new` at 1"),
            (Fault::Frame(128), "a frame of kind 128"),
            (Fault::FrameType(9), "a type of kind 9 in a frame"),
            (
                Fault::AnnotationTarget(0x4c),
                "a type annotation of kind 0x4c",
            ),
            (
                Fault::AnnotationValue(0),
                "an annotation's value of kind 0x00",
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
                "it would get longer than 65,535 bytes".to_owned(),
            ),
            (
                Reason::JumpTooFar(7),
                "the jump at 7 would get too long".to_owned(),
            ),
            (
                Reason::StackTooDeep,
                "its stack would get too deep".to_owned(),
            ),
            (
                Reason::TooManyLocals,
                "it would get too many locals".to_owned(),
            ),
            (
                Reason::PoolFull,
                "the class has no room for more constants".to_owned(),
            ),
            (
                Reason::Damaged(damage.clone()),
                format!("it is not understood: {damage}"),
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
            "byte 0: it does not begin as a class file does"
        );
        let name = Error::HookName("é".into()).to_string();
        assert_eq!(name, "`é` cannot be the name of a hook");
    }
}
