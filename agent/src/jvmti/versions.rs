//! Reads how often a class was redefined, and detects virtual threads. Some JVMs lack the field with the number of
//! redefinitions, and some lack the function that detects virtual threads.
//!
//! The JVM counts how often the bytecode of each class was redefined. After a redefinition, a method's id refers to the
//! new bytecode, and frames that still run the old bytecode get another id. So the line numbers that were read for a
//! method's id are valid as long as the count of the method's class stays the same.
//!
//! Allocation counters, `usage=on` and other agents redefine classes. JVMTI has no event that reports when a
//! redefinition takes effect.

use std::ptr::NonNull;

use jni_sys::{_jfieldID, JNI_VERSION_21};

use super::calls::{Class, Env, Ref, Result, Weak, jni};

/// The field of `java.lang.Class` that counts redefinitions of the class and of its superclasses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redefinitions(Option<NonNull<_jfieldID>>);

// SAFETY: a field id belongs to no particular thread.
unsafe impl Send for Redefinitions {}
// SAFETY: a field id belongs to no particular thread.
unsafe impl Sync for Redefinitions {}

impl Redefinitions {
    /// Looks up the field `classRedefinedCount` of `java.lang.Class`. If the JVM does not have this field, every class
    /// counts as never redefined.
    pub(crate) fn new(env: &Env<'_>) -> Self {
        let class = env.class(c"java/lang/Class");
        let field = class.ok().and_then(|class| {
            let (name, kind) = (c"classRedefinedCount".as_ptr(), c"I".as_ptr());
            // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
            // NUL-terminated.
            let field = unsafe { jni!(env.raw(), v1_1.GetFieldID, class.raw(), name, kind) };
            NonNull::new(field)
        });
        // If the field does not exist, the JVM throws an exception, which is cleared here.
        let _ = env.check();
        Self(field)
    }

    /// Returns the number of redefinitions of a class.
    pub(crate) fn count(self, env: &Env<'_>, class: Ref<'_, Class>) -> i32 {
        self.0.map_or(0, |field| {
            // SAFETY: the reference is to a class object, which has this field of type `int`.
            unsafe { jni!(env.raw(), v1_1.GetIntField, class.raw(), field.as_ptr()) }
        })
    }
}

/// A version of a class: the class between two redefinitions.
#[derive(Debug)]
pub(crate) struct Version {
    class: Weak<Class>,
    redefinitions: Redefinitions,
    count: i32,
}

impl Version {
    /// Returns the current version of a class.
    pub(crate) fn new(
        env: &Env<'_>,
        class: Ref<'_, Class>,
        redefinitions: Redefinitions,
    ) -> Result<Self> {
        Ok(Self {
            class: class.new_weak_ref(env)?,
            redefinitions,
            count: redefinitions.count(env, class),
        })
    }

    /// True if the class is still loaded and was not redefined since `self` was created.
    pub(crate) fn is_current(&self, env: &Env<'_>) -> bool {
        let class = self.class.get(env);
        class.is_some_and(|class| self.redefinitions.count(env, class.get()) == self.count)
    }

    /// True if this is a version of `class`.
    pub(crate) fn is_of(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        let own = self.class.get(env);
        own.is_some_and(|own| own.get().is(env, class.any()))
    }
}

/// Detects virtual threads. JVMs before JDK 21 have none.
pub(crate) struct VirtualThreads {
    known: bool,
}

impl VirtualThreads {
    pub(crate) fn new(env: &Env<'_>) -> Self {
        Self {
            known: env.version() >= JNI_VERSION_21,
        }
    }

    pub(crate) fn contain(&self, env: &Env<'_>, thread: Ref<'_>) -> bool {
        // SAFETY: the JVM has JNI version 21 or later, so its table has this function. `v24` has it at the same offset,
        // and nothing else of `v24` is read. The environment belongs to the current thread, and the reference is to a
        // thread.
        self.known && unsafe { jni!(env.raw(), v24.IsVirtualThread, thread.raw()) }
    }
}
