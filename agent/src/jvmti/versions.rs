//! Functions that only some JVMs have: versions of classes, and virtual threads.
//!
//! Versions of classes: the JVM counts how often a class got other bytecode.
//!
//! After a redefinition a method's id stands for the new bytecode. Frames that still run the old bytecode get another id. So lines that
//! were read for an id are valid until the count of the method's class changes. Counters, `usage=on` and other agents redefine classes,
//! and no event of JVMTI reports when a redefinition takes effect.

use std::ptr::NonNull;

use jni_sys::{_jfieldID, JNI_VERSION_21};

use super::calls::{Class, Env, Ref, Result, Weak, jni};

/// The field of `java.lang.Class` in which the JVM counts redefinitions of a class and of the classes above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redefinitions(Option<NonNull<_jfieldID>>);

// SAFETY: the id of a field belongs to no thread.
unsafe impl Send for Redefinitions {}
// SAFETY: as above.
unsafe impl Sync for Redefinitions {}

impl Redefinitions {
    /// Looks up the field. A JVM without the field has the count 0 for each class.
    pub(crate) fn new(env: &Env<'_>) -> Self {
        let class = env.class(c"java/lang/Class");
        let field = class.ok().and_then(|class| {
            let (name, kind) = (c"classRedefinedCount".as_ptr(), c"I".as_ptr());
            // SAFETY: the environment belongs to the current thread, the reference is to a class, the strings are NUL-terminated.
            let field = unsafe { jni!(env.raw(), v1_1.GetFieldID, class.raw(), name, kind) };
            NonNull::new(field)
        });
        // Not finding the field throws an exception, which is cleared here.
        let _ = env.check();
        Self(field)
    }

    /// Returns how often the JVM has redefined a class.
    pub(crate) fn count(self, env: &Env<'_>, class: Ref<'_, Class>) -> i32 {
        self.0.map_or(0, |field| {
            // SAFETY: the reference is to a class object, which has the field, an int.
            unsafe { jni!(env.raw(), v1_1.GetIntField, class.raw(), field.as_ptr()) }
        })
    }
}

/// A class between two redefinitions.
#[derive(Debug)]
pub(crate) struct Version {
    class: Weak<Class>,
    redefinitions: Redefinitions,
    count: i32,
}

impl Version {
    /// The version that a class has now.
    pub(crate) fn new(
        env: &Env<'_>,
        class: Ref<'_, Class>,
        redefinitions: Redefinitions,
    ) -> Result<Self> {
        Ok(Self {
            class: class.hold_weakly(env)?,
            redefinitions,
            count: redefinitions.count(env, class),
        })
    }

    /// True if the class has been redefined no more since, and is loaded.
    pub(crate) fn is_current(&self, env: &Env<'_>) -> bool {
        let class = self.class.get(env);
        class.is_some_and(|class| self.redefinitions.count(env, class.get()) == self.count)
    }

    /// True if this is a version of the class.
    pub(crate) fn is_of(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        let own = self.class.get(env);
        own.is_some_and(|own| own.get().is(env, class.any()))
    }
}

/// True if the thread is virtual. JVMs before JDK 21 have no virtual threads.
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
        // SAFETY: the JVM is of JNI version 21 or later, whose table has this function (24 has it at
        // the same place, and only it is read); the
        // environment is the current thread's, the reference is to a thread.
        self.known && unsafe { jni!(env.raw(), v24.IsVirtualThread, thread.raw()) }
    }
}
