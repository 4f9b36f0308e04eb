//! Looks up classes and methods by name, and calls methods.
//!
//! The JVM does not check arguments against the method's signature. This module checks each argument by its [`Value`],
//! and the result by the [`Kind`] that the caller expects.

use std::ffi::CStr;
use std::ptr::null_mut;

use jni_sys::{jbyte, jmethodID, jobject, jsize, jvalue};

use super::refs::Kind;
use super::{Any, Buffer, Class, Env, JniError, Local, Ref, Result, Text, jni};

/// An argument of a method call.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Int(i32),
    /// An argument for a parameter of type `String` or `Object`.
    Text(Ref<'a, Text>),
}

impl Value<'_> {
    fn fits(&self, signature: &str) -> bool {
        match self {
            Value::Int(_) => signature == "I",
            Value::Text(_) => Text::is_of(signature) || signature == "Ljava/lang/Object;",
        }
    }

    fn raw(&self) -> jvalue {
        match self {
            Value::Int(value) => jvalue { i: *value },
            Value::Text(text) => jvalue { l: text.raw() },
        }
    }
}

/// A method's name and signature.
type Named<'a> = (&'a CStr, &'a CStr);

/// Splits the first type off the types in a signature. Returns that type and the remaining types.
fn split_type(rest: &str) -> Option<(&str, &str)> {
    let arrays = rest.len() - rest.trim_start_matches('[').len();
    let end = match rest.as_bytes().get(arrays)? {
        b'L' => rest.find(';')?,
        _ => arrays,
    };
    rest.split_at_checked(end + 1)
}

/// Returns the result type of a signature, or `None` if the arguments do not fit its parameters.
fn returns<'a>(signature: &'a CStr, arguments: &[Value<'_>]) -> Option<&'a str> {
    let (mut parameters, result) = signature
        .to_str()
        .ok()?
        .strip_prefix('(')?
        .split_once(')')?;
    for argument in arguments {
        let (parameter, rest) = split_type(parameters)?;
        if !argument.fits(parameter) {
            return None;
        }
        parameters = rest;
    }
    parameters.is_empty().then_some(result)
}

fn signature_error((name, signature): Named<'_>) -> JniError {
    JniError::Unfit(format!(
        "{}{}",
        name.to_string_lossy(),
        signature.to_string_lossy()
    ))
}

impl<'local> Env<'local> {
    /// Returns a class by its name with slashes. The JVM looks up the class through the caller's class loader.
    pub(crate) fn class(&self, name: &CStr) -> Result<Local<'local, Class>> {
        // SAFETY: the environment belongs to the current thread, the string is NUL-terminated.
        unsafe {
            let class = jni!(self.raw(), v1_1.FindClass, name.as_ptr());
            self.take_non_null(class, "a class")
        }
    }

    /// Creates a `java.lang.Thread` that has not been started.
    pub(crate) fn thread(&self, name: &str) -> Result<Local<'local>> {
        let name = self.text(name)?;
        let class = self.class(c"java/lang/Thread")?;
        let arguments = [Value::Text(name.get())];
        self.construct(class.get(), c"(Ljava/lang/String;)V", &arguments)
    }

    /// Defines a class in the boot loader.
    pub(crate) fn define_class(&self, name: &CStr, bytes: &[u8]) -> Result<Local<'local, Class>> {
        let len = jsize::try_from(bytes.len()).unwrap_or(jsize::MAX);
        let bytes = bytes.as_ptr().cast::<jbyte>();
        // SAFETY: the environment belongs to the current thread, and the string is NUL-terminated. A null loader is the
        // boot loader. `bytes` points to `len` bytes.
        unsafe {
            let class = jni!(
                self.raw(),
                v1_1.DefineClass,
                name.as_ptr(),
                null_mut(),
                bytes,
                len
            );
            self.take_non_null(class, "a new class")
        }
    }

    /// Returns a method's id. The id stays valid as long as the class is loaded.
    pub(crate) fn method(&self, class: Ref<'_, Class>, named: Named<'_>) -> Result<jmethodID> {
        let (name, signature) = (named.0.as_ptr(), named.1.as_ptr());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let id = unsafe { jni!(self.raw(), v1_1.GetMethodID, class.raw(), name, signature) };
        self.checked_method_id(id, named)
    }

    /// Returns a static method's id. The id stays valid as long as the class is loaded.
    pub(crate) fn static_method(
        &self,
        class: Ref<'_, Class>,
        named: Named<'_>,
    ) -> Result<jmethodID> {
        let (name, signature) = (named.0.as_ptr(), named.1.as_ptr());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let id = unsafe {
            jni!(
                self.raw(),
                v1_1.GetStaticMethodID,
                class.raw(),
                name,
                signature
            )
        };
        self.checked_method_id(id, named)
    }

    /// Returns the id of a method that JNI has looked up, or an error if the lookup failed.
    fn checked_method_id(&self, id: jmethodID, named: Named<'_>) -> Result<jmethodID> {
        self.check()?;
        if id.is_null() {
            Err(signature_error(named))
        } else {
            Ok(id)
        }
    }

    /// True if the class has a method with this name and signature.
    pub(crate) fn has_method(&self, class: Ref<'_, Class>, named: Named<'_>) -> Result<bool> {
        match self.method(class, named) {
            Ok(_) => Ok(true),
            Err(JniError::Thrown(name)) if name == "java.lang.NoSuchMethodError" => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Creates an object with the constructor that has this signature.
    pub(crate) fn construct(
        &self,
        class: Ref<'_, Class>,
        signature: &CStr,
        arguments: &[Value<'_>],
    ) -> Result<Local<'local, Any>> {
        let named = (c"<init>", signature);
        let result = returns(signature, arguments);
        let constructor = self.method(class, named)?;
        if result != Some("V") {
            return Err(signature_error(named));
        }
        let raw: Vec<jvalue> = arguments.iter().map(Value::raw).collect();
        // SAFETY: the constructor belongs to this class, and the arguments have the types in its signature.
        unsafe {
            let made = jni!(
                self.raw(),
                v1_1.NewObjectA,
                class.raw(),
                constructor,
                raw.as_ptr()
            );
            self.take_non_null(made, "a new object")
        }
    }

    /// Calls a method that returns an object. Returns `None` if the method returns null.
    pub(crate) fn call_object<K: Kind>(
        &self,
        object: Ref<'_>,
        named: Named<'_>,
        arguments: &[Value<'_>],
    ) -> Result<Option<Local<'local, K>>> {
        let method = self.method_of(object, named)?;
        // SAFETY: the method belongs to the object's class.
        unsafe {
            self.answer(named, arguments, |arguments| {
                jni!(
                    self.raw(),
                    v1_1.CallObjectMethodA,
                    object.raw(),
                    method,
                    arguments
                )
            })
        }
    }

    /// Calls a static method that returns an object. Returns `None` if the method returns null.
    pub(crate) fn call_static_object<K: Kind>(
        &self,
        class: Ref<'_, Class>,
        named: Named<'_>,
        arguments: &[Value<'_>],
    ) -> Result<Option<Local<'local, K>>> {
        let method = self.static_method(class, named)?;
        // SAFETY: the method belongs to the class.
        unsafe {
            self.answer(named, arguments, |arguments| {
                jni!(
                    self.raw(),
                    v1_1.CallStaticObjectMethodA,
                    class.raw(),
                    method,
                    arguments
                )
            })
        }
    }

    /// Runs `call` if the arguments fit the signature and the result type is of kind `K`. Otherwise returns an error.
    ///
    /// # Safety
    /// `call` calls a method with this name and signature, and passes it the given arguments.
    // SAFETY: the types of arguments and result are checked against the signature before `call` runs.
    unsafe fn answer<K: Kind>(
        &self,
        named: Named<'_>,
        arguments: &[Value<'_>],
        call: impl FnOnce(*const jvalue) -> jobject,
    ) -> Result<Option<Local<'local, K>>> {
        if !returns(named.1, arguments).is_some_and(K::is_of) {
            return Err(signature_error(named));
        }
        let raw: Vec<jvalue> = arguments.iter().map(Value::raw).collect();
        let answer = call(raw.as_ptr());
        // SAFETY: the caller guarantees a new reference, and its type in the signature is of kind `K`.
        unsafe { self.take_result(answer) }
    }

    /// Calls a method as [`Self::call_object`] does. Returns an error if the method returns null.
    pub(crate) fn call_non_null<K: Kind>(
        &self,
        object: Ref<'_>,
        named: Named<'_>,
        arguments: &[Value<'_>],
    ) -> Result<Local<'local, K>> {
        self.call_object(object, named, arguments)?
            .ok_or_else(|| signature_error(named))
    }

    /// Calls a static method as [`Self::call_static_object`] does. Returns an error if the method returns null.
    pub(crate) fn call_static_non_null<K: Kind>(
        &self,
        class: Ref<'_, Class>,
        named: Named<'_>,
        arguments: &[Value<'_>],
    ) -> Result<Local<'local, K>> {
        self.call_static_object(class, named, arguments)?
            .ok_or_else(|| signature_error(named))
    }

    /// Calls a method without parameters that returns a string.
    pub(crate) fn call_string(&self, object: Ref<'_>, name: &CStr) -> Result<String> {
        let named = (name, c"()Ljava/lang/String;");
        self.call_non_null::<Text>(object, named, &[])?
            .get()
            .read(self)
    }

    /// Calls a method without parameters that returns a `long`.
    pub(crate) fn ask_long(&self, object: Ref<'_>, name: &CStr) -> Result<i64> {
        let method = self.method_of(object, (name, c"()J"))?;
        let none = std::ptr::null();
        // SAFETY: the method belongs to the object's class, takes no parameters and returns a `long`.
        let answer = unsafe { jni!(self.raw(), v1_1.CallLongMethodA, object.raw(), method, none) };
        self.check()?;
        Ok(answer)
    }

    /// Calls a method without parameters that returns nothing.
    pub(crate) fn call_void(&self, object: Ref<'_>, name: &CStr) -> Result<()> {
        let method = self.method_of(object, (name, c"()V"))?;
        let none = std::ptr::null();
        // SAFETY: the method belongs to the object's class, takes no parameters and returns nothing.
        unsafe { jni!(self.raw(), v1_1.CallVoidMethodA, object.raw(), method, none) };
        self.check()
    }

    /// Calls a method without parameters that returns an `int`.
    pub(crate) fn ask_int(&self, object: Ref<'_>, name: &CStr) -> Result<i32> {
        let method = self.method_of(object, (name, c"()I"))?;
        let none = std::ptr::null();
        // SAFETY: the method belongs to the object's class, takes no parameters and returns an `int`.
        let answer = unsafe { jni!(self.raw(), v1_1.CallIntMethodA, object.raw(), method, none) };
        self.check()?;
        Ok(answer)
    }

    /// Returns the id of a method of an object's class.
    fn method_of(&self, object: Ref<'_>, named: Named<'_>) -> Result<jmethodID> {
        // SAFETY: the environment belongs to the current thread, and the reference is valid. The result is a new
        // reference to its class.
        let class: Local<'_, Class> = unsafe {
            let class = jni!(self.raw(), v1_1.GetObjectClass, object.raw());
            self.take_non_null(class, "an object's class")?
        };
        self.method(class.get(), named)
    }
}

impl Ref<'_, Buffer> {
    /// Returns the address and the size in bytes of a direct buffer's memory. Returns `None` if the buffer is not
    /// direct.
    pub(crate) fn memory(self, env: &Env<'_>) -> Option<(std::ptr::NonNull<u8>, usize)> {
        // SAFETY: the environment belongs to the current thread, and the reference is to a buffer.
        let (start, len) = unsafe {
            (
                jni!(env.raw(), v1_4.GetDirectBufferAddress, self.raw()),
                jni!(env.raw(), v1_4.GetDirectBufferCapacity, self.raw()),
            )
        };
        let start = std::ptr::NonNull::new(start.cast())?;
        Some((start, usize::try_from(len).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, returns};

    #[test]
    fn arguments_are_compared_with_the_signature() {
        let int = Value::Int(1);
        assert_eq!(returns(c"()J", &[]), Some("J"));
        assert_eq!(returns(c"(I)[[I", &[int]), Some("[[I"));
        assert_eq!(returns(c"(I)V", &[]), None);
        assert_eq!(returns(c"()V", &[int]), None);
        assert_eq!(returns(c"(J)V", &[int]), None);
        assert_eq!(returns(c"(II)V", &[int, int]), Some("V"));
        assert_eq!(returns(c"([II)V", &[int, int]), None);
        assert_eq!(returns(c"(Ljava/lang/Object;I)V", &[int, int]), None);
        for broken in [c"", c"(", c"I)", c"(L)V", c"([)V", c"(Ljava/lang/String)V"] {
            assert_eq!(returns(broken, &[int]), None, "{broken:?}");
        }
    }
}
