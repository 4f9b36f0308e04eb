//! Arrays and strings.

use std::sync::OnceLock;

use jni_sys::{jsize, jstring};

use super::{
    Any, Bytes, Class, Env, Global, Ints, JniError, Local, Longs, Objects, Ref, Result, Text,
    Texts, jni,
};

/// The class of all objects, once it was needed.
static OBJECT: OnceLock<Global<Class>> = OnceLock::new();

/// A length or an index as the JVM has it. What is too large for it is too large for an array.
fn size(len: usize) -> jsize {
    jsize::try_from(len).unwrap_or(jsize::MAX)
}

fn object_class(env: &Env<'_>) -> Result<Ref<'static, Class>> {
    if let Some(class) = OBJECT.get() {
        return Ok(class.get());
    }
    let class = env.class(c"java/lang/Object")?.hold(env)?;
    Ok(OBJECT.get_or_init(|| class).get())
}

macro_rules! primitives {
    ($($kind:ident: $type:ty, $make:ident, $new:ident, $put:ident;)*) => {
        impl<'local> Env<'local> {$(
            /// An array of so many zeroes.
            pub(crate) fn $make(&self, len: usize) -> Result<Local<'local, $kind>> {
                // SAFETY: the environment belongs to the current thread, the length is not negative.
                unsafe {
                    let array = jni!(self.raw(), v1_1.$new, size(len));
                    self.made(array, "a new array")
                }
            }
        )*}

        $(impl Ref<'_, $kind> {
            /// Overwrites elements; the JVM refuses those that are outside.
            pub(crate) fn put(self, env: &Env<'_>, start: usize, values: &[$type]) -> Result<()> {
                let (start, len) = (size(start), size(values.len()));
                // SAFETY: the environment belongs to the current thread, the reference is to an array of this type, and there are as
                // many values as told. The JVM compares start and length with the array's.
                unsafe {
                    jni!(env.raw(), v1_1.$put, self.raw(), start, len, values.as_ptr());
                }
                env.check()
            }
        })*
    };
}

primitives! {
    Bytes: i8, bytes, NewByteArray, SetByteArrayRegion;
    Ints: i32, ints, NewIntArray, SetIntArrayRegion;
    Longs: i64, longs, NewLongArray, SetLongArrayRegion;
}

impl Ref<'_, Ints> {
    /// The first elements; the JVM refuses to read more than there are.
    pub(crate) fn read(self, env: &Env<'_>, values: &mut [i32]) -> Result<()> {
        let (start, len) = (0, size(values.len()));
        // SAFETY: the environment belongs to the current thread, the reference is to an array of this type, and there is room for as
        // many values as told.
        unsafe {
            jni!(
                env.raw(),
                v1_1.GetIntArrayRegion,
                self.raw(),
                start,
                len,
                values.as_mut_ptr()
            );
        }
        env.check()
    }
}

impl<'local> Env<'local> {
    /// An `Object[]` of so many `null`s.
    pub(crate) fn objects(&self, len: usize) -> Result<Local<'local, Objects>> {
        let class = object_class(self)?;
        let none = std::ptr::null_mut();
        // SAFETY: the environment belongs to the current thread, the reference is to a class, the length is not negative.
        unsafe {
            let array = jni!(
                self.raw(),
                v1_1.NewObjectArray,
                size(len),
                class.raw(),
                none
            );
            self.made(array, "a new array")
        }
    }

    /// A new string.
    pub(crate) fn text(&self, text: &str) -> Result<Local<'local, Text>> {
        let units: Vec<u16> = text.encode_utf16().collect();
        // SAFETY: the environment belongs to the current thread; there are as many units as told.
        unsafe {
            let text = jni!(
                self.raw(),
                v1_1.NewString,
                units.as_ptr(),
                size(units.len())
            );
            self.made(text, "a new string")
        }
    }
}

impl Ref<'_, Objects> {
    /// An element; `None` for null.
    pub(crate) fn at<'local>(
        self,
        env: &Env<'local>,
        index: usize,
    ) -> Result<Option<Local<'local, Any>>> {
        // SAFETY: the environment belongs to the current thread, the reference is to an array of objects, whose length the JVM compares
        // with the index.
        unsafe {
            let element = jni!(
                env.raw(),
                v1_1.GetObjectArrayElement,
                self.raw(),
                size(index)
            );
            env.returned(element)
        }
    }

    /// Replaces an element.
    pub(crate) fn put(self, env: &Env<'_>, index: usize, value: Option<Ref<'_>>) -> Result<()> {
        let value = value.map_or(std::ptr::null_mut(), Ref::raw);
        // SAFETY: as above; the value is valid or null, and the JVM compares its class with the array's.
        unsafe {
            jni!(
                env.raw(),
                v1_1.SetObjectArrayElement,
                self.raw(),
                size(index),
                value
            );
        }
        env.check()
    }
}

impl Ref<'_, Texts> {
    /// All its strings; an empty one in place of null.
    pub(crate) fn read(self, env: &Env<'_>) -> Result<Vec<String>> {
        // SAFETY: the environment belongs to the current thread, the reference is to an array.
        let len = unsafe { jni!(env.raw(), v1_1.GetArrayLength, self.raw()) };
        env.check()?;
        (0..len)
            .map(|index| {
                // SAFETY: as above, and its elements are strings.
                let text: Option<Local<'_, Text>> = unsafe {
                    let text = jni!(env.raw(), v1_1.GetObjectArrayElement, self.raw(), index);
                    env.returned(text)?
                };
                text.map_or(Ok(String::new()), |text| text.get().read(env))
            })
            .collect()
    }
}

impl Ref<'_, Text> {
    /// The whole text. What is no Unicode in it is replaced.
    pub(crate) fn read(self, env: &Env<'_>) -> Result<String> {
        self.first(env, usize::MAX)
            .ok_or_else(|| JniError::Unfit("a string".to_owned()))
    }

    /// Its first characters. They are copied to memory outside of the Java heap.
    pub(super) fn first(self, env: &Env<'_>, most: usize) -> Option<String> {
        let text: jstring = self.raw();
        // SAFETY: the environment belongs to the current thread, the reference is to a string.
        let len = unsafe { jni!(env.raw(), v1_1.GetStringLength, text) };
        let len = usize::try_from(len).unwrap_or(0).min(most);
        let mut units = vec![0; len];
        // SAFETY: as above; the string is as long, for strings do not change, and there is room for as many units as told.
        unsafe {
            let (start, place) = (0, units.as_mut_ptr());
            jni!(
                env.raw(),
                v1_2.GetStringRegion,
                text,
                start,
                size(len),
                place
            );
        }
        if env.is_throwing() {
            // SAFETY: as above. What was thrown is not looked at: this is how the message of an exception is read.
            unsafe { jni!(env.raw(), v1_1.ExceptionClear) };
            return None;
        }
        Some(String::from_utf16_lossy(&units))
    }
}
