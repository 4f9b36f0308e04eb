//! Classes that the JNI bindings look up when a call fails, looked up while there is room.
//!
//! The `jni` crate compares a failed call's exception with classes that it looks up when it first needs them, and
//! the lookup makes Java strings. In a full heap it fails too, its exception is compared in turn, and so on until the
//! stack is used up: the JVM dies of a segmentation fault without a word. Once found, a class stays found.

use std::fmt::{self, Display, Formatter};

use heapdiff_sites::attach;
use jni::Env;
use jni::errors::{Error, JniError, Result};
use jni::exceptions::{
    JArrayIndexOutOfBoundsException, JArrayStoreException, JClassCircularityError,
    JClassFormatError, JClassNotFoundException, JExceptionInInitializerError,
    JIllegalArgumentException, JIllegalMonitorStateException, JInstantiationException,
    JLinkageError, JNoClassDefFoundError, JNoSuchFieldError, JNoSuchMethodError,
    JNumberFormatException, JOutOfMemoryError, JRuntimeException, JSecurityException,
    JStringIndexOutOfBoundsException,
};
use jni::objects::{
    JByteBuffer, JClass, JClassLoader, JObject, JObjectArray, JString, JThread, JThrowable,
};
use jni::refs::{LoaderContext, Reference};

use crate::jvmti::java::has_room;

/// Bytes that the heap must have left: many times what the lookups take, since a collector that is short of memory (Parallel, by
/// its limit on time) may refuse a few bytes just after it gave more. To ask in vain is an `OutOfMemoryError` to the JVM.
const ROOM: usize = 1 << 20;

/// Why the agent cannot be loaded here.
pub(crate) enum Unready {
    /// The heap has no room for the lookups.
    HeapFull,
    /// A lookup failed.
    Missing(Error),
}

impl Unready {
    /// What [`attach`] has for it.
    pub(crate) fn code(&self) -> i32 {
        match self {
            Unready::HeapFull => attach::HEAP_FULL,
            Unready::Missing(_) => attach::FAILED,
        }
    }
}

impl Display for Unready {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Unready::HeapFull => out.write_str("the heap is full"),
            Unready::Missing(error) => write!(out, "{error}"),
        }
    }
}

/// Looks all of them up.
pub(crate) fn prepare(env: &mut Env<'_>) -> std::result::Result<(), Unready> {
    if !has_room(env, ROOM) {
        return Err(Unready::HeapFull);
    }
    look_up(env).map_err(|error| match error {
        Error::JniCall(JniError::NoMemory) => Unready::HeapFull,
        other => Unready::Missing(other),
    })
}

fn look_up(env: &Env<'_>) -> Result<()> {
    // First those that the lookups of the others may meet.
    class_of::<JOutOfMemoryError>(env)?;
    class_of::<JSecurityException>(env)?;
    class_of::<JThread>(env)?;
    class_of::<JClassLoader>(env)?;
    class_of::<JClass>(env)?;
    class_of::<JString>(env)?;
    class_of::<JThrowable>(env)?;
    class_of::<JLinkageError>(env)?;
    class_of::<JClassNotFoundException>(env)?;
    class_of::<JNoClassDefFoundError>(env)?;
    class_of::<JExceptionInInitializerError>(env)?;
    class_of::<JClassCircularityError>(env)?;
    class_of::<JClassFormatError>(env)?;
    class_of::<JArrayIndexOutOfBoundsException>(env)?;
    class_of::<JArrayStoreException>(env)?;
    class_of::<JIllegalArgumentException>(env)?;
    class_of::<JIllegalMonitorStateException>(env)?;
    class_of::<JInstantiationException>(env)?;
    class_of::<JNoSuchFieldError>(env)?;
    class_of::<JNoSuchMethodError>(env)?;
    class_of::<JNumberFormatException>(env)?;
    class_of::<JRuntimeException>(env)?;
    class_of::<JStringIndexOutOfBoundsException>(env)?;
    class_of::<JObject>(env)?;
    class_of::<JObjectArray<'static, JObject<'static>>>(env)?;
    class_of::<JByteBuffer>(env)
}

fn class_of<T: Reference>(env: &Env<'_>) -> Result<()> {
    T::lookup_class(env, &LoaderContext::None).map(drop)
}
