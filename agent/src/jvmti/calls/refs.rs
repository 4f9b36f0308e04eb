//! References to Java objects. Their types express how long they are valid and what they refer to.

use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};

use jni_sys::{_jobject, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jobject};

use super::{Env, JniError, Result, jni};

/// The kind of object to which a reference leads, such as a string or an array. The types that implement this trait are
/// only markers: they have no values.
pub(crate) trait Kind {
    /// `signature` describes a type. Returns true if all objects of this type are of this kind.
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

/// Phantom data that carries the lifetime and the kind of a reference.
type Lasts<'a, K> = PhantomData<(&'a (), fn() -> K)>;

/// Returns the error for a lack of memory outside of the Java heap.
fn no_room() -> JniError {
    JniError::Thrown("no memory for a JNI reference".to_owned())
}

/// A reference that is not null and valid for `'a`.
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
    /// Returns a reference, or `None` for null.
    ///
    /// # Safety
    /// The reference is null, or it is valid for `'a` and refers to an object of kind `K`.
    // SAFETY: the function only stores the reference. The contract above makes later uses sound.
    pub(crate) unsafe fn new(raw: jobject) -> Option<Self> {
        Some(Self {
            raw: NonNull::new(raw)?,
            kind: PhantomData,
        })
    }

    pub(crate) fn raw(self) -> jobject {
        self.raw.as_ptr()
    }

    /// Returns the same reference, as a [`Ref`] to an object of any kind.
    pub(crate) fn any(self) -> Ref<'a> {
        Ref {
            raw: self.raw,
            kind: PhantomData,
        }
    }

    /// Creates a global reference, which stays valid after the native call has returned.
    pub(crate) fn new_global_ref(self, env: &Env<'_>) -> Result<Global<K>> {
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

    /// Creates a reference that does not keep the object alive.
    pub(crate) fn new_weak_ref(self, env: &Env<'_>) -> Result<Weak<K>> {
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

    /// True if both references are to the same object.
    pub(crate) fn is(self, env: &Env<'_>, other: Ref<'_>) -> bool {
        // SAFETY: the environment belongs to the current thread, the references are valid.
        unsafe { jni!(env.raw(), v1_1.IsSameObject, self.raw(), other.raw()) }
    }
}

/// A local reference, valid during the native call and released when dropped.
#[derive(Debug)]
pub(crate) struct Local<'local, K = Any> {
    raw: NonNull<_jobject>,
    env: NonNull<JNIEnv>,
    kind: Lasts<'local, K>,
}

impl<'local, K> Local<'local, K> {
    /// Takes over a local reference, or returns `None` for null.
    ///
    /// # Safety
    /// The reference is null, or the JVM has just returned it for this call. If it is not null, nobody else owns it,
    /// and it refers to an object of kind `K`.
    // SAFETY: the function only stores the reference. The contract above makes later uses and the deletion sound.
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

    /// Creates a global reference, which stays valid after the native call has returned.
    pub(crate) fn new_global_ref(self, env: &Env<'local>) -> Result<Global<K>> {
        self.get().new_global_ref(env)
    }
}

impl<K> Drop for Local<'_, K> {
    fn drop(&mut self) {
        // SAFETY: the raw pointers keep the value on the thread of its environment, and the lifetime keeps it within
        // its native call. Deletion is allowed while an exception is pending.
        unsafe { jni!(self.env.as_ptr(), v1_1.DeleteLocalRef, self.raw.as_ptr()) };
    }
}

/// A global reference, valid until it is dropped.
#[derive(Debug)]
pub(crate) struct Global<K = Any> {
    raw: NonNull<_jobject>,
    vm: NonNull<JavaVM>,
    kind: PhantomData<fn() -> K>,
}

// SAFETY: a global reference and the JVM belong to no particular thread.
unsafe impl<K> Send for Global<K> {}
// SAFETY: a global reference and the JVM belong to no particular thread.
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
    /// Releases the reference. If the current thread is not attached to the JVM, the reference leaks.
    fn drop(&mut self) {
        if let Some(env) = current_env(self.vm) {
            // SAFETY: the environment belongs to the current thread, and nothing else owns the reference.
            unsafe { jni!(env, v1_1.DeleteGlobalRef, self.raw.as_ptr()) };
        }
    }
}

/// Returns the environment of the current thread, or `None` if the thread is not attached to the JVM.
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

// SAFETY: a weak global reference and the JVM belong to no particular thread.
unsafe impl<K> Send for Weak<K> {}
// SAFETY: a weak global reference and the JVM belong to no particular thread.
unsafe impl<K> Sync for Weak<K> {}

impl<K> Weak<K> {
    /// Returns the object, or `None` if it was collected.
    pub(crate) fn get<'local>(&self, env: &Env<'local>) -> Option<Local<'local, K>> {
        // SAFETY: the environment belongs to the current thread, and `self` owns the reference. The result is a new
        // local reference to an object of kind `K`, or null.
        unsafe {
            let object = jni!(env.raw(), v1_2.NewLocalRef, self.raw.as_ptr());
            Local::new(env, object)
        }
    }
}

impl<K> Drop for Weak<K> {
    /// Releases the reference. If the current thread is not attached to the JVM, the reference leaks.
    fn drop(&mut self) {
        if let Some(env) = current_env(self.vm) {
            // SAFETY: the environment belongs to the current thread, and nothing else owns the reference.
            unsafe { jni!(env, v1_2.DeleteWeakGlobalRef, self.raw.as_ptr()) };
        }
    }
}
