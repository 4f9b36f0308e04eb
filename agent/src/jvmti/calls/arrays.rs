//! Creates, reads and changes Java arrays and strings.

use std::sync::OnceLock;

use jni_sys::{jsize, jstring};

use super::{
    Any, Bytes, Class, Env, Global, Ints, JniError, Local, Longs, Objects, Ref, Result, Text,
    Texts, jni,
};

/// The class `java.lang.Object`. It is looked up on first use.
static OBJECT: OnceLock<Global<Class>> = OnceLock::new();

/// Converts a length or an index to JNI's type. Returns the largest `jsize` for a larger value, which is too large for
/// any array.
fn size(len: usize) -> jsize {
    jsize::try_from(len).unwrap_or(jsize::MAX)
}

fn object_class(env: &Env<'_>) -> Result<Ref<'static, Class>> {
    if let Some(class) = OBJECT.get() {
        return Ok(class.get());
    }
    let class = env.class(c"java/lang/Object")?.new_global_ref(env)?;
    Ok(OBJECT.get_or_init(|| class).get())
}

macro_rules! primitives {
    ($($kind:ident: $type:ty, $make:ident, $new:ident, $put:ident;)*) => {
        impl<'local> Env<'local> {$(
            /// Creates an array of `len` zeros.
            pub(crate) fn $make(&self, len: usize) -> Result<Local<'local, $kind>> {
                // SAFETY: the environment belongs to the current thread, and the length is not negative.
                unsafe {
                    let array = jni!(self.raw(), v1_1.$new, size(len));
                    self.take_non_null(array, "a new array")
                }
            }
        )*}

        $(impl Ref<'_, $kind> {
            /// Overwrites elements of the array. Returns an error if the range is out of bounds.
            pub(crate) fn put(self, env: &Env<'_>, start: usize, values: &[$type]) -> Result<()> {
                let (start, len) = (size(start), size(values.len()));
                // SAFETY: the environment belongs to the current thread, the reference is to an array of this type, and
                // `values` has `len` elements. The JVM checks the range.
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
    /// Reads the first elements of the array into `values`. Returns an error if the array has fewer elements than
    /// `values`.
    pub(crate) fn read(self, env: &Env<'_>, values: &mut [i32]) -> Result<()> {
        let (start, len) = (0, size(values.len()));
        // SAFETY: the environment belongs to the current thread, the reference is to an array of this type, and
        // `values` has room for `len` elements. The JVM checks the range.
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
    /// Creates an `Object[]` of `len` nulls.
    pub(crate) fn objects(&self, len: usize) -> Result<Local<'local, Objects>> {
        let class = object_class(self)?;
        let none = std::ptr::null_mut();
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the length is not
        // negative.
        unsafe {
            let array = jni!(
                self.raw(),
                v1_1.NewObjectArray,
                size(len),
                class.raw(),
                none
            );
            self.take_non_null(array, "a new array")
        }
    }

    /// Creates a string.
    pub(crate) fn text(&self, text: &str) -> Result<Local<'local, Text>> {
        let units: Vec<u16> = text.encode_utf16().collect();
        // SAFETY: the environment belongs to the current thread, and `units` has the given length.
        unsafe {
            let text = jni!(
                self.raw(),
                v1_1.NewString,
                units.as_ptr(),
                size(units.len())
            );
            self.take_non_null(text, "a new string")
        }
    }
}

impl Ref<'_, Objects> {
    /// Returns an element of the array, or `None` if the element is null.
    pub(crate) fn at<'local>(
        self,
        env: &Env<'local>,
        index: usize,
    ) -> Result<Option<Local<'local, Any>>> {
        // SAFETY: the environment belongs to the current thread, and the reference is to an array of objects. The JVM
        // checks the index.
        unsafe {
            let element = jni!(
                env.raw(),
                v1_1.GetObjectArrayElement,
                self.raw(),
                size(index)
            );
            env.take_result(element)
        }
    }

    /// Replaces an element.
    pub(crate) fn put(self, env: &Env<'_>, index: usize, value: Option<Ref<'_>>) -> Result<()> {
        let value = value.map_or(std::ptr::null_mut(), Ref::raw);
        // SAFETY: the environment belongs to the current thread, and the reference is to an array of objects. The value
        // is valid or null. The JVM checks the index and the value's class.
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
    /// Returns all strings of the array; null becomes the empty string.
    pub(crate) fn read(self, env: &Env<'_>) -> Result<Vec<String>> {
        // SAFETY: the environment belongs to the current thread, and the reference is to an array.
        let len = unsafe { jni!(env.raw(), v1_1.GetArrayLength, self.raw()) };
        env.check()?;
        (0..len)
            .map(|index| {
                // SAFETY: the environment belongs to the current thread, and the reference is to an array of strings.
                let text: Option<Local<'_, Text>> = unsafe {
                    let text = jni!(env.raw(), v1_1.GetObjectArrayElement, self.raw(), index);
                    env.take_result(text)?
                };
                text.map_or(Ok(String::new()), |text| text.get().read(env))
            })
            .collect()
    }
}

impl Ref<'_, Text> {
    /// Returns the whole string. Unpaired surrogates are replaced.
    pub(crate) fn read(self, env: &Env<'_>) -> Result<String> {
        self.first(env, usize::MAX)
            .ok_or_else(|| JniError::Unfit("a string".to_owned()))
    }

    /// Returns at most the first `most` UTF-16 units of the string. This allocates nothing in the Java heap.
    pub(super) fn first(self, env: &Env<'_>, most: usize) -> Option<String> {
        let text: jstring = self.raw();
        // SAFETY: the environment belongs to the current thread, and the reference is to a string.
        let len = unsafe { jni!(env.raw(), v1_1.GetStringLength, text) };
        let len = usize::try_from(len).unwrap_or(0).min(most);
        let mut units = vec![0; len];
        // SAFETY: the environment belongs to the current thread, and the reference is to a string. The string has at
        // least `len` units, since strings never change, and the buffer has room for them.
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
            // SAFETY: the environment belongs to the current thread. The exception is ignored, because this function is
            // used to read messages of exceptions.
            unsafe { jni!(env.raw(), v1_1.ExceptionClear) };
            return None;
        }
        Some(String::from_utf16_lossy(&units))
    }
}
