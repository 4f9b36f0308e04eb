//! JNI: the JVM's own functions, each followed by the question whether it threw.
//!
//! An exception is cleared at once and becomes a [`JniError`]. For that nothing is looked up and nothing is made in the
//! Java heap: in a full heap each lookup would throw as well, and be asked about in turn. So a call that fails costs
//! no more than the call.
//!
//! What a call needs to be sound is in the types: a [`Ref`] is not null, lives while what it was taken from does, and
//! its kind says what it refers to; a [`Local`] and a [`Global`] give their reference back when they go.

mod arrays;
mod methods;
mod refs;

use std::marker::PhantomData;
use std::ptr::NonNull;

use jni_sys::{JNIEnv, JavaVM, jfieldID, jobject};

use super::Jvmti;
pub(crate) use methods::Value;
pub(crate) use refs::{
    Any, Buffer, Bytes, Class, Global, Ints, Kind, Local, Longs, Objects, Ref, Text, Texts, Weak,
};

/// So much of an exception's message is read.
const MOST_OF_A_MESSAGE: usize = 200;
const OUT_OF_MEMORY: &str = "Ljava/lang/OutOfMemoryError;";

/// Why a call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JniError {
    /// `OutOfMemoryError`, since the Java heap has no room.
    #[error("the heap is full")]
    HeapFull,
    /// Another exception: its class, and for an `OutOfMemoryError` of another kind its message.
    #[error("{0}")]
    Thrown(String),
    /// Null where there should be an object, or something of another type than was asked for.
    #[error("{0} has an unexpected value")]
    Unfit(String),
}

pub(crate) type Result<T> = std::result::Result<T, JniError>;

/// The JNI environment of the current thread, for one native call.
///
/// The pointer in it keeps it on its thread.
pub(crate) struct Env<'local> {
    raw: NonNull<JNIEnv>,
    /// Tells the names of exceptions.
    jvmti: Jvmti,
    call: PhantomData<&'local ()>,
}

/// Calls a function of JNI's table.
macro_rules! jni {
    ($raw:expr, $version:ident . $name:ident $(, $argument:expr)*) => {{
        let raw: *mut ::jni_sys::JNIEnv = $raw;
        ((**raw).$version.$name)(raw $(, $argument)*)
    }};
}
pub(crate) use jni;

impl<'local> Env<'local> {
    /// # Safety
    /// `raw` is the current thread's environment, and `'local` no longer than the native call that it was given for;
    /// the JVMTI environment is not disposed of meanwhile.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn new(raw: NonNull<JNIEnv>, jvmti: Jvmti) -> Self {
        Self {
            raw,
            jvmti,
            call: PhantomData,
        }
    }

    pub(crate) fn raw(&self) -> *mut JNIEnv {
        self.raw.as_ptr()
    }

    /// The version of JNI, such as `0x0015_0000` of JDK 21.
    pub(crate) fn version(&self) -> i32 {
        // SAFETY: the environment belongs to the current thread.
        unsafe { jni!(self.raw(), v1_1.GetVersion) }
    }

    pub(crate) fn vm(&self) -> Result<NonNull<JavaVM>> {
        let mut vm = std::ptr::null_mut();
        // SAFETY: the environment belongs to the current thread, the out parameter is a local pointer.
        unsafe { jni!(self.raw(), v1_2.GetJavaVM, &raw mut vm) };
        NonNull::new(vm).ok_or_else(|| JniError::Unfit("the JVM".to_owned()))
    }

    /// Whether the program has an exception that it has not handled. Most calls are forbidden then.
    pub(crate) fn is_throwing(&self) -> bool {
        // SAFETY: the environment belongs to the current thread.
        unsafe { jni!(self.raw(), v1_2.ExceptionCheck) }
    }

    /// What the last call threw, which is cleared.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_throwing() {
            Err(self.caught())
        } else {
            Ok(())
        }
    }

    /// Takes over what a call returned: a new local reference, or null, in which case it may have thrown.
    ///
    /// # Safety
    /// The reference is fresh from the JVM and owned by nobody else, to an object of the kind, or null.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn returned<K>(&self, object: jobject) -> Result<Option<Local<'local, K>>> {
        // SAFETY: the caller upholds the `# Safety` contract. Deleting it is allowed while an exception is pending.
        let object = unsafe { Local::new(self, object) };
        self.check()?;
        Ok(object)
    }

    /// As [`Self::returned`] for what is never null without an exception.
    ///
    /// # Safety
    /// As there.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn made<K>(&self, object: jobject, what: &str) -> Result<Local<'local, K>> {
        // SAFETY: the caller upholds the `# Safety` contract.
        let made = unsafe { self.returned(object)? };
        made.ok_or_else(|| JniError::Unfit(what.to_owned()))
    }

    /// Clears the pending exception and says what it was.
    ///
    /// Its class is told by JVMTI, its message is read from its field: of both copies are made outside of the Java heap.
    fn caught(&self) -> JniError {
        let raw = self.raw();
        // SAFETY: the environment belongs to the current thread; these are allowed while an exception is pending.
        let thrown = unsafe {
            let thrown = jni!(raw, v1_1.ExceptionOccurred);
            jni!(raw, v1_1.ExceptionClear);
            Local::<Any>::new(self, thrown)
        };
        let Some(thrown) = thrown else {
            return JniError::Thrown("an exception".to_owned());
        };
        // SAFETY: the reference is to an object, which has a class.
        let class = unsafe {
            let class = jni!(raw, v1_1.GetObjectClass, thrown.raw());
            Local::<Class>::new(self, class)
        };
        let name = class
            .as_ref()
            .and_then(|class| self.jvmti.class_signature(class.get()).ok())
            .unwrap_or_default();
        if name != OUT_OF_MEMORY {
            return JniError::Thrown(heapdiff_sites::types::of_signature(&name));
        }
        let message = class.and_then(|class| self.message(thrown.get(), class.get()));
        match message.as_deref() {
            None | Some("Java heap space" | "GC overhead limit exceeded") => JniError::HeapFull,
            Some(message) => JniError::Thrown(format!("OutOfMemoryError: {message}")),
        }
    }

    /// What an exception says. To ask for the field of a class that is in use makes nothing.
    fn message(&self, thrown: Ref<'_>, class: Ref<'_, Class>) -> Option<String> {
        let raw = self.raw();
        let (name, signature) = (c"detailMessage", c"Ljava/lang/String;");
        // SAFETY: the references are to an exception and its class, the strings are NUL-terminated; the field is of the class, and
        // of the type String, or the JVM would not have found it. What it throws is cleared and not looked at.
        let text = unsafe {
            let field: jfieldID = jni!(
                raw,
                v1_1.GetFieldID,
                class.raw(),
                name.as_ptr(),
                signature.as_ptr()
            );
            if field.is_null() {
                jni!(raw, v1_1.ExceptionClear);
                return None;
            }
            Local::<Text>::new(self, jni!(raw, v1_1.GetObjectField, thrown.raw(), field))?
        };
        text.get().first(self, MOST_OF_A_MESSAGE)
    }
}
