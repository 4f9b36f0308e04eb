//! References to Java objects, by how long they last and what they refer to.

use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use jni_sys::{_jobject, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jobject};

use super::{Env, JniError, Result, jni};

/// What a reference is to. The types have no values.
pub(crate) trait Kind {
    /// Whether all that has this type, as signatures write it, is of the kind.
    fn is_of(signature: &str) -> bool;
}

macro_rules! kinds {
    ($($(#[$text:meta])* $name:ident: $signature:ident => $is_of:expr;)*) => {$(
        $(#[$text])*
        #[derive(Debug)]
        pub(crate) enum $name {}

        impl Kind for $name {
            fn is_of($signature: &str) -> bool {
                $is_of
            }
        }
    )*};
}

kinds! {
    /// Any object.
    Any: signature => signature.starts_with(['L', '[']);
    /// A `java.lang.Class`.
    Class: signature => signature == "Ljava/lang/Class;";
    /// A `String`.
    Text: signature => signature == "Ljava/lang/String;";
    /// A `ByteBuffer`.
    Buffer: signature => signature == "Ljava/nio/ByteBuffer;";
    /// An `Object[]`, whose elements may be anything.
    Objects: signature => signature == "[Ljava/lang/Object;";
    /// A `String[]`.
    Texts: signature => signature == "[Ljava/lang/String;";
    /// A `byte[]`.
    Bytes: signature => signature == "[B";
    /// An `int[]`.
    Ints: signature => signature == "[I";
    /// A `long[]`.
    Longs: signature => signature == "[J";
}

/// How long a reference lasts, and to what it is.
type Lasts<'a, K> = PhantomData<(&'a (), fn() -> K)>;

/// The error of a JVM that has no room outside of the Java heap.
fn no_room() -> JniError {
    JniError::Thrown("no memory for a JNI reference".to_owned())
}

/// A reference that is valid for `'a`, and not null.
pub(crate) struct Ref<'a, K = Any> {
    raw: NonNull<_jobject>,
    kind: Lasts<'a, K>,
}

impl<K> Clone for Ref<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Ref<'_, K> {}

impl<'a, K> Ref<'a, K> {
    /// # Safety
    /// The reference is null, or to an object of the kind and valid for `'a`.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn new(raw: jobject) -> Option<Self> {
        Some(Self {
            raw: NonNull::new(raw)?,
            kind: PhantomData,
        })
    }

    pub(crate) fn raw(self) -> jobject {
        self.raw.as_ptr()
    }

    /// The same, of which the kind does not matter any more.
    pub(crate) fn any(self) -> Ref<'a> {
        Ref {
            raw: self.raw,
            kind: PhantomData,
        }
    }

    /// Keeps hold of it beyond the call.
    pub(crate) fn hold(self, env: &Env<'_>) -> Result<Global<K>> {
        let vm = env.vm()?;
        // SAFETY: the environment belongs to the current thread, the reference is valid.
        let raw = unsafe { jni!(env.raw(), v1_1.NewGlobalRef, self.raw()) };
        env.check()?;
        Ok(Global {
            raw: NonNull::new(raw).ok_or_else(no_room)?,
            vm,
            kind: PhantomData,
        })
    }

    /// Makes a reference that does not keep the object alive.
    pub(crate) fn hold_weakly(self, env: &Env<'_>) -> Result<Weak<K>> {
        let vm = env.vm()?;
        // SAFETY: the environment belongs to the current thread, the reference is valid.
        let raw = unsafe { jni!(env.raw(), v1_2.NewWeakGlobalRef, self.raw()) };
        env.check()?;
        Ok(Weak {
            raw: NonNull::new(raw).ok_or_else(no_room)?,
            vm,
            kind: PhantomData,
        })
    }

    /// Whether both are to one object.
    pub(crate) fn is(self, env: &Env<'_>, other: Ref<'_>) -> bool {
        // SAFETY: the environment belongs to the current thread, the references are valid.
        unsafe { jni!(env.raw(), v1_1.IsSameObject, self.raw(), other.raw()) }
    }
}

/// A reference that lasts for the native call, given back when this goes.
#[derive(Debug)]
pub(crate) struct Local<'local, K = Any> {
    raw: NonNull<_jobject>,
    env: NonNull<JNIEnv>,
    kind: Lasts<'local, K>,
}

impl<'local, K> Local<'local, K> {
    /// # Safety
    /// The reference is null, or fresh from the JVM for this call, owned by nobody else and to an object of the kind.
    // SAFETY: sound under the `# Safety` contract above; each unsafe block below gives its argument.
    pub(crate) unsafe fn new(env: &Env<'local>, raw: jobject) -> Option<Self> {
        Some(Self {
            raw: NonNull::new(raw)?,
            env: env.raw,
            kind: PhantomData,
        })
    }

    pub(crate) fn raw(&self) -> jobject {
        self.raw.as_ptr()
    }

    pub(crate) fn get(&self) -> Ref<'_, K> {
        Ref {
            raw: self.raw,
            kind: PhantomData,
        }
    }

    /// Keeps hold of it beyond the call.
    pub(crate) fn hold(self, env: &Env<'local>) -> Result<Global<K>> {
        self.get().hold(env)
    }
}

impl<K> Drop for Local<'_, K> {
    fn drop(&mut self) {
        // SAFETY: this is on the thread whose environment it is, for the pointers keep it there, and in the call that it was
        // given for. It may be done while an exception is pending.
        unsafe { jni!(self.env.as_ptr(), v1_1.DeleteLocalRef, self.raw.as_ptr()) };
    }
}

/// A reference that lasts until this goes.
#[derive(Debug)]
pub(crate) struct Global<K = Any> {
    raw: NonNull<_jobject>,
    vm: NonNull<JavaVM>,
    kind: PhantomData<fn() -> K>,
}

// SAFETY: a global reference belongs to no thread, and neither does the JVM.
unsafe impl<K> Send for Global<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Global<K> {}

impl<K> Global<K> {
    pub(crate) fn get(&self) -> Ref<'_, K> {
        Ref {
            raw: self.raw,
            kind: PhantomData,
        }
    }
}

impl<K> Drop for Global<K> {
    /// On a thread that the JVM does not know the reference stays.
    fn drop(&mut self) {
        if let Some(env) = current_env(self.vm) {
            // SAFETY: the environment belongs to the current thread. The reference is this one's alone.
            unsafe { jni!(env, v1_1.DeleteGlobalRef, self.raw.as_ptr()) };
        }
    }
}

/// The environment of the current thread; `None` on a thread that the JVM does not know.
fn current_env(vm: NonNull<JavaVM>) -> Option<*mut JNIEnv> {
    let (vm, mut env) = (vm.as_ptr(), null_mut());
    // SAFETY: the JVM lives as long as the process; the out parameter is a local pointer.
    let got = unsafe { ((**vm).v1_2.GetEnv)(vm, &raw mut env, JNI_VERSION_1_8) };
    (got == JNI_OK && !env.is_null()).then_some(env.cast())
}

/// A reference that does not keep its object alive.
#[derive(Debug)]
pub(crate) struct Weak<K = Any> {
    raw: NonNull<_jobject>,
    vm: NonNull<JavaVM>,
    kind: PhantomData<fn() -> K>,
}

// SAFETY: a weak global reference belongs to no thread, and neither does the JVM.
unsafe impl<K> Send for Weak<K> {}
// SAFETY: as above.
unsafe impl<K> Sync for Weak<K> {}

impl<K> Weak<K> {
    /// The object; `None` if it was collected.
    pub(crate) fn get<'local>(&self, env: &Env<'local>) -> Option<Local<'local, K>> {
        // SAFETY: the environment belongs to the current thread, the reference is this one's. What comes back is a new local reference
        // to an object of the kind, or null.
        unsafe {
            let object = jni!(env.raw(), v1_2.NewLocalRef, self.raw.as_ptr());
            Local::new(env, object)
        }
    }
}

impl<K> Drop for Weak<K> {
    /// On a thread that the JVM does not know the reference stays.
    fn drop(&mut self) {
        if let Some(env) = current_env(self.vm) {
            // SAFETY: the environment belongs to the current thread. The reference is this one's alone.
            unsafe { jni!(env, v1_2.DeleteWeakGlobalRef, self.raw.as_ptr()) };
        }
    }
}
