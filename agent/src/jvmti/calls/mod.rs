//! Wraps JNI. After each call, the wrapper checks whether the call threw an exception.
//!
//! The wrapper clears an exception at once and returns a [`JniError`]. Meanwhile, it neither allocates in the Java heap
//! nor looks up classes. In a full heap, a lookup would throw again, and that exception would need handling, too.
//!
//! The types express the conditions under which a call is sound. A [`Ref`] is not null, lives as long as its source,
//! and its kind is the type of its object. A [`Local`] and a [`Global`] release their reference when they are dropped.

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

/// Maximum number of characters that are read of an exception's message.
const MOST_OF_A_MESSAGE: usize = 200;
const OUT_OF_MEMORY: &str = "Ljava/lang/OutOfMemoryError;";

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JniError {
    /// The Java heap is full (`OutOfMemoryError`).
    #[error("the heap is full")]
    HeapFull,
    /// Another exception. Contains the name of the exception's class. For an `OutOfMemoryError` that is not about the
    /// Java heap, contains the error's message instead.
    #[error("{0}")]
    Thrown(String),
    /// The call returned null although an object was expected, or it returned an object of another type.
    #[error("{0} has an unexpected value")]
    Unfit(String),
}

pub(crate) type Result<T> = std::result::Result<T, JniError>;

/// The JNI environment of the current thread, during one native call.
///
/// This type contains a raw pointer, so a value cannot move to another thread.
pub(crate) struct Env<'local> {
    raw: NonNull<JNIEnv>,
    /// The JVMTI environment. It is used to read the class names of exceptions.
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
    /// Returns the JVMTI environment of the agent.
    pub(crate) const fn jvmti(&self) -> Jvmti {
        self.jvmti
    }

    /// Creates an [`Env`] for a native call.
    ///
    /// # Safety
    /// `raw` is the current thread's environment. The lifetime `'local` ends no later than the native call to which the
    /// JVM passed `raw`. The JVMTI environment is not disposed of meanwhile.
    // SAFETY: the function only stores the pointers. The contract above makes later uses sound.
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

    /// Returns the version of JNI, for example `0x0015_0000` for JDK 21.
    pub(crate) fn version(&self) -> i32 {
        // SAFETY: the environment belongs to the current thread.
        unsafe { jni!(self.raw(), v1_1.GetVersion) }
    }

    pub(crate) fn vm(&self) -> Result<NonNull<JavaVM>> {
        let mut vm = std::ptr::null_mut();
        // SAFETY: the environment belongs to the current thread; the out parameter is a local pointer.
        unsafe { jni!(self.raw(), v1_2.GetJavaVM, &raw mut vm) };
        NonNull::new(vm).ok_or_else(|| JniError::Unfit("the JVM".to_owned()))
    }

    /// True if an exception is pending. Most JNI calls are forbidden while an exception is pending.
    pub(crate) fn is_throwing(&self) -> bool {
        // SAFETY: the environment belongs to the current thread.
        unsafe { jni!(self.raw(), v1_2.ExceptionCheck) }
    }

    /// If an exception is pending, clears it and returns it as an error.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_throwing() {
            Err(self.take_exception())
        } else {
            Ok(())
        }
    }

    /// Takes over the result of a call: a new local reference or null. If the call threw an exception, returns the
    /// exception as an error.
    ///
    /// # Safety
    /// The JVM has just returned the reference, and nothing else owns it. The reference is null, or its object is of
    /// kind `K`.
    // SAFETY: the reference is taken over by exactly one owner, as the contract above allows.
    pub(crate) unsafe fn take_result<K>(
        &self,
        object: jobject,
    ) -> Result<Option<Local<'local, K>>> {
        // SAFETY: the caller upholds the `# Safety` contract. A local reference may be deleted while an exception is
        // pending.
        let object = unsafe { Local::new(self, object) };
        self.check()?;
        Ok(object)
    }

    /// Takes over a result as [`Self::take_result`] does, for calls that return null only when they throw.
    ///
    /// # Safety
    /// The JVM has just returned the reference, and nothing else owns it. The reference is null, or its object is of
    /// kind `K`.
    // SAFETY: the reference is taken over by exactly one owner, as the contract above allows.
    pub(crate) unsafe fn take_non_null<K>(
        &self,
        object: jobject,
        what: &str,
    ) -> Result<Local<'local, K>> {
        // SAFETY: the caller upholds the `# Safety` contract.
        let made = unsafe { self.take_result(object)? };
        made.ok_or_else(|| JniError::Unfit(what.to_owned()))
    }

    /// Clears the pending exception and returns a description of the exception.
    ///
    /// The class name is read through JVMTI, and the message is read from the exception's field. Neither read allocates
    /// anything in the Java heap.
    fn take_exception(&self) -> JniError {
        let raw = self.raw();
        // SAFETY: the environment belongs to the current thread. These functions are allowed while an exception is
        // pending.
        let thrown = unsafe {
            let thrown = jni!(raw, v1_1.ExceptionOccurred);
            jni!(raw, v1_1.ExceptionClear);
            Local::<Any>::new(self, thrown)
        };
        let Some(thrown) = thrown else {
            return JniError::Thrown("an exception".to_owned());
        };
        // SAFETY: the reference is to an object. The result is a new reference to its class.
        let class = unsafe {
            let class = jni!(raw, v1_1.GetObjectClass, thrown.raw());
            Local::<Class>::new(self, class)
        };
        let name = class
            .as_ref()
            .and_then(|class| self.jvmti.class_signature(class.get()).ok())
            .unwrap_or_default();
        if name != OUT_OF_MEMORY {
            return JniError::Thrown(heapdiff_sites::types::name_from_signature(&name));
        }
        let message = class.and_then(|class| self.message(thrown.get(), class.get()));
        match message.as_deref() {
            None | Some("Java heap space" | "GC overhead limit exceeded") => JniError::HeapFull,
            Some(message) => JniError::Thrown(format!("OutOfMemoryError: {message}")),
        }
    }

    /// Returns an exception's message. The lookup of the field allocates nothing, because the class is in use.
    fn message(&self, thrown: Ref<'_>, class: Ref<'_, Class>) -> Option<String> {
        let raw = self.raw();
        let (name, signature) = (c"detailMessage", c"Ljava/lang/String;");
        // SAFETY: the references are to an exception and its class, and the strings are NUL-terminated. The JVM found
        // the field in this class with the type `String`. If the lookup throws, the exception is cleared and ignored.
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
