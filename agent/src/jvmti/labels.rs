//! The class `heapdiff.Labels`, whose methods the agent implements, and the ids of threads.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use jni_sys::{_jfieldID, JNINativeMethod, jint};

use super::calls::{Class, Env, JniError, Local, Ref, Result, jni};

const NAME: &CStr = c"heapdiff/Labels";

/// A native method of `heapdiff.Labels`: its name, its signature, and the function that implements it.
pub(crate) struct Native {
    pub(crate) name: &'static CStr,
    pub(crate) signature: &'static CStr,
    pub(crate) function: *mut c_void,
}

/// The id of the field of `java.lang.Thread` that contains the thread's id.
struct IdField(NonNull<_jfieldID>);

// SAFETY: a field id belongs to no particular thread.
unsafe impl Send for IdField {}
// SAFETY: a field id belongs to no particular thread.
unsafe impl Sync for IdField {}

/// The id of the field that contains a thread's id. It is set before the native methods are registered.
static ID: OnceLock<IdField> = OnceLock::new();

impl<'local> Env<'local> {
    /// Defines the class `heapdiff.Labels` in the boot loader, unless it exists, and registers its native methods.
    pub(crate) fn define_labels(&self, bytes: &[u8], natives: &[Native]) -> Result<()> {
        let thread = self.class(c"java/lang/Thread")?;
        let (name, kind) = (c"tid".as_ptr(), c"J".as_ptr());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let field = unsafe { jni!(self.raw(), v1_1.GetFieldID, thread.raw(), name, kind) };
        self.check()?;
        let field = NonNull::new(field).ok_or_else(|| JniError::Unfit("Thread.tid".to_owned()))?;
        ID.get_or_init(|| IdField(field));
        let class: Local<'_, Class> = match self.define_class(NAME, bytes) {
            // An earlier attach has already defined the class `heapdiff.Labels`.
            Err(JniError::Thrown(thrown)) if thrown == "java.lang.LinkageError" => {
                self.class(NAME)?
            }
            other => other?,
        };
        let methods: Vec<JNINativeMethod> = natives
            .iter()
            .map(|native| JNINativeMethod {
                name: native.name.as_ptr().cast_mut(),
                signature: native.signature.as_ptr().cast_mut(),
                fnPtr: native.function,
            })
            .collect();
        let count = jint::try_from(methods.len()).unwrap_or(0);
        // SAFETY: the environment belongs to the current thread. The array has `count` elements. Its strings are
        // NUL-terminated, and each function has the parameters and the result of its signature.
        unsafe {
            let methods = methods.as_ptr();
            jni!(
                self.raw(),
                v1_1.RegisterNatives,
                class.raw(),
                methods,
                count
            )
        };
        self.check()
    }

    /// Returns the id of a platform or virtual thread. The JVM never gives this id to another thread. Returns 0 before
    /// [`Self::define_labels`] was called.
    pub(crate) fn thread_id(&self, thread: Ref<'_>) -> u64 {
        ID.get().map_or(0, |field| {
            // SAFETY: the reference is to a thread, which has this field of type `long`.
            let id = unsafe {
                jni!(
                    self.raw(),
                    v1_1.GetLongField,
                    thread.raw(),
                    field.0.as_ptr()
                )
            };
            id.cast_unsigned()
        })
    }
}
