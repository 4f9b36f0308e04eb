//! Reads what Kotlin's compiler stores about the suspension points of a function: the annotation `DebugMetadata` of its
//! continuation class.

use noak::error::DecodeError;
use noak::reader::attributes::annotations::{Annotation, ElementValue};
use noak::reader::cpool::{Index, Utf8};
use noak::reader::{AttributeContent, Class};

const ANNOTATION: &str = "Lkotlin/coroutines/jvm/internal/DebugMetadata;";

/// The suspension points of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SuspendFunction {
    class: String,
    method: String,
    file: String,
    /// The source lines of the suspension points, in the order of the labels. The first label is 1.
    lines: Vec<i32>,
}

impl SuspendFunction {
    /// Reads the annotation `DebugMetadata` from a class file. Returns `None` if the class does not have this
    /// annotation.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, DecodeError> {
        let class = Class::new(bytes)?;
        for attribute in class.attributes() {
            if let AttributeContent::RuntimeVisibleAnnotations(annotations) =
                attribute?.read_content(class.pool())?
            {
                for annotation in annotations.annotations() {
                    let annotation = annotation?;
                    let kind = class.pool().retrieve(annotation.type_())?;
                    if kind.as_bytes() == ANNOTATION.as_bytes() {
                        return Self::decode(&class, &annotation).map(Some);
                    }
                }
            }
        }
        Ok(None)
    }

    fn decode(class: &Class<'_>, annotation: &Annotation<'_>) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        for pair in annotation.pairs() {
            let pair = pair?;
            let name = class.pool().retrieve(pair.name())?;
            match (name.as_bytes(), pair.value()) {
                (b"c", ElementValue::String(text)) => found.class = text_of(class, text)?,
                (b"m", ElementValue::String(text)) => found.method = text_of(class, text)?,
                (b"f", ElementValue::String(text)) => found.file = text_of(class, text)?,
                (b"l", ElementValue::Array(lines)) => {
                    for line in lines.iter() {
                        if let ElementValue::Int(line) = line? {
                            found.lines.push(class.pool().retrieve(line)?.value);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns the suspension point with this label as a frame, such as `com.acme.OrdersKt.load(Orders.kt:12)`.
    pub(crate) fn frame(&self, label: i64) -> Option<String> {
        let at = usize::try_from(label).ok()?.checked_sub(1)?;
        let line = self.lines.get(at)?;
        let Self {
            class,
            method,
            file,
            ..
        } = self;
        Some(format!("{class}.{method}({file}:{line})"))
    }
}

fn text_of<'a>(class: &Class<'a>, text: Index<Utf8<'a>>) -> Result<String, DecodeError> {
    let text = class.pool().retrieve(text)?;
    Ok(text.display().to_string())
}
