//! JNI calls for counting the use of collections. They define the class with the hooks, and check fields and methods of
//! other classes. A hook is a method that the rewritten methods of collections call.

use std::ffi::CString;

use jni_sys::jobject;

use super::hook;
use crate::jvmti::calls::{Class, Env, Global, JniError, Local, Objects, Ref, Result, jni};

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| JniError::Unfit(text.to_owned()))
}

impl<'local> Env<'local> {
    /// True if a class or one of its superclasses has a field of this name and type.
    pub(crate) fn has_field(&self, class: Ref<'_, Class>, name: &str, kind: &str) -> Result<bool> {
        let (name, kind) = (text(name)?, text(kind)?);
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let field = unsafe {
            let (name, kind) = (name.as_ptr(), kind.as_ptr());
            jni!(self.raw(), v1_1.GetFieldID, class.raw(), name, kind)
        };
        match self.check() {
            Ok(()) => Ok(!field.is_null()),
            Err(JniError::Thrown(thrown)) if thrown == "java.lang.NoSuchFieldError" => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// True if a class has a method of this name and descriptor.
    pub(crate) fn has(&self, class: Ref<'_, Class>, name: &str, descriptor: &str) -> Result<bool> {
        self.has_method(class, (&text(name)?, &text(descriptor)?))
    }

    /// Returns the class with the hooks. If the class does not exist yet, defines it in the boot loader.
    pub(crate) fn usage_class(&self, bytes: &[u8]) -> Result<Local<'local, Class>> {
        let name = text(hook::THIS)?;
        let class = match self.define_class(&name, bytes) {
            // The class is already defined: an earlier call defined it, and then threw for lack of memory.
            Err(JniError::Thrown(thrown)) if thrown == "java.lang.LinkageError" => {
                self.class(&name)?
            }
            other => other?,
        };
        // If an agent of another version has defined this class, the class may lack some hooks.
        for [_, hook, descriptor] in hook::ALL {
            self.static_method(class.get(), (&text(hook)?, &text(descriptor)?))?;
        }
        Ok(class)
    }

    /// Returns the table of watched collections, which is in a static field of the class with the hooks.
    pub(crate) fn usage_table(&self, class: Ref<'_, Class>) -> Result<Global<Objects>> {
        let (name, kind) = (text(hook::TABLE.0)?, text(hook::TABLE.1)?);
        let (raw, of) = (self.raw(), class.raw());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let field = unsafe { jni!(raw, v1_1.GetStaticFieldID, of, name.as_ptr(), kind.as_ptr()) };
        self.check()?;
        if field.is_null() {
            return Err(JniError::Unfit(hook::TABLE.0.to_owned()));
        }
        // SAFETY: the JVM found the field in this class, with the type of an array of references. The result is a new
        // local reference or null.
        let table: Local<'_, Objects> = unsafe {
            let table: jobject = jni!(raw, v1_1.GetStaticObjectField, of, field);
            self.take_non_null(table, hook::TABLE.0)?
        };
        table.new_global_ref(self)
    }
}
