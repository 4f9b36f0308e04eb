//! Defines the class with the hooks in the JVM, and finds classes by the numbers by which hooks identify them.

use std::ffi::CString;
use std::ptr::null_mut;

use jni_sys::jvalue;

use super::hooks;
use crate::jvmti::calls::{Class, Env, JniError, Local, Ref, jni};
use crate::jvmti::classes::INITIALIZED;
use crate::jvmti::{Jvmti, Result, call};

impl Jvmti {
    /// Returns the loaded classes for whose number `wanted` returns true. Each class comes with its number and its
    /// signature.
    pub(crate) fn by_number<'local>(
        &self,
        env: &Env<'local>,
        mut wanted: impl FnMut(u64) -> bool,
    ) -> Result<Vec<(u64, String, Local<'local, Class>)>> {
        let mut found = Vec::new();
        let Ok(number) = env.numbers() else {
            return Ok(found);
        };
        for class in self.classes(env)? {
            let number = number(class.get());
            if wanted(number) {
                found.push((number, self.class_signature(class.get())?, class));
            }
        }
        Ok(found)
    }

    /// True if a class overrides `Object.clone`.
    pub(crate) fn has_own_clone(&self, env: &Env<'_>, class: Ref<'_, Class>) -> bool {
        let mut status = 0;
        // SAFETY: the reference is to a class object; the out parameter is a local int.
        let told = unsafe { call!(self, GetClassStatus, class.raw(), &raw mut status) };
        // Skip a class that is not initialized: JNI's lookup of a method would wait for the initialization of the
        // class.
        if told.is_err() || status & INITIALIZED == 0 {
            return false;
        }
        let Ok(method) = env.method(class, (c"clone", c"()Ljava/lang/Object;")) else {
            return false;
        };
        let mut owner = null_mut();
        // SAFETY: the method belongs to a class that the reference keeps loaded; the out parameter is a local pointer.
        let told = unsafe { call!(self, GetMethodDeclaringClass, method.cast(), &raw mut owner) };
        // SAFETY: the JVM has just returned this local reference to a class and nothing else owns it, or it is null.
        let owner = unsafe { Local::<Class>::new(env, owner) };
        let owner = owner.filter(|_| told.is_ok());
        let signature = owner.map(|owner| self.class_signature(owner.get()));
        signature.is_some_and(|s| s.is_ok_and(|s| s != "Ljava/lang/Object;"))
    }
}

impl Env<'_> {
    /// Returns a function that maps a class to the number by which hooks identify the class. The function returns 0 if
    /// this number cannot be read.
    fn numbers(&self) -> crate::jvmti::calls::Result<impl Fn(Ref<'_, Class>) -> u64 + use<'_>> {
        let unfit = |_| JniError::Unfit(hooks::THIS.to_owned());
        let name = CString::new(hooks::THIS).map_err(unfit)?;
        let hooks = self.class(&name)?;
        let method = self.static_method(hooks.get(), (c"number", c"(Ljava/lang/Class;)J"))?;
        Ok(move |class: Ref<'_, Class>| {
            let argument = jvalue { l: class.raw() };
            // SAFETY: the method belongs to the hooks' class, which the reference keeps loaded. It is static, takes a
            // class and returns a long.
            let number = unsafe {
                jni!(
                    self.raw(),
                    v1_1.CallStaticLongMethodA,
                    hooks.raw(),
                    method,
                    &raw const argument
                )
            };
            match self.check() {
                Ok(()) => number.cast_unsigned(),
                Err(_) => 0,
            }
        })
    }

    /// Defines the class with the hooks in the boot loader and initializes it.
    pub(crate) fn define_hooks(&self, bytes: &[u8]) -> crate::jvmti::calls::Result<()> {
        let text = |text: &str| CString::new(text).map_err(|_| JniError::Unfit(text.to_owned()));
        let name = text(hooks::THIS)?;
        let class = match self.define_class(&name, bytes) {
            // The class is already defined: an earlier call defined it, and then threw for lack of memory.
            Err(JniError::Thrown(thrown)) if thrown == "java.lang.LinkageError" => {
                self.class(&name)?
            }
            other => other?,
        };
        let (object, kind) = (text(hooks::HOOKS.object)?, text(hooks::OBJECT_TYPE)?);
        self.static_method(class.get(), (&object, &kind)).map(drop)
    }
}
