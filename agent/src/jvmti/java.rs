//! JNI calls whose argument types the JVM does not check, each behind a function that does.

use jni::errors::{Error, Result};
use jni::objects::{Global, JClass, JIntArray, JMethodID, JObject, JObjectArray, JStaticMethodID};
use jni::signature::{Primitive, ReturnType, RuntimeFieldSignature, RuntimeMethodSignature};
use jni::strings::JNIString;
use jni::sys::{JNI_VERSION_21, jvalue};
use jni::{Env, JNIVersion, JValue, jni_sig};

use crate::sample_ref::{self, Reaper};

/// The class `heapdiff.SampleRef`, defined in the boot loader.
pub(crate) struct RefClass {
    class: Global<JClass<'static>>,
    constructor: JMethodID,
    sweep: JStaticMethodID,
    reaper: Reaper,
}

/// What the constructor takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefFields {
    pub(crate) uid: u64,
    pub(crate) size: i64,
    pub(crate) site: u32,
    pub(crate) class: u32,
    pub(crate) thread: u32,
    pub(crate) time: u32,
    pub(crate) slot: i32,
    pub(crate) mark: i32,
}

impl RefClass {
    /// Defines the class.
    pub(crate) fn define(env: &mut Env<'_>, reaper: Reaper) -> Result<Self> {
        let name = JNIString::from(heapdiff_sites::CLASS_INTERNAL);
        let boot = jni::objects::JClassLoader::null();
        let class = env.define_class(Some(&name), &boot, &sample_ref::bytes(reaper))?;
        let signature = RuntimeMethodSignature::from_str(sample_ref::CONSTRUCTOR)?;
        let init = JNIString::from("<init>");
        let constructor = env.get_method_id(&class, &init, signature.method_signature())?;
        let sweep_type = match reaper {
            Reaper::Scan => sample_ref::SCAN,
            Reaper::Queue => sample_ref::DRAIN,
        };
        let signature = RuntimeMethodSignature::from_str(sweep_type)?;
        let sweep = JNIString::from(sample_ref::SWEEP);
        let sweep = env.get_static_method_id(&class, &sweep, signature.method_signature())?;
        let refs = Self {
            class: env.new_global_ref(&class)?,
            constructor,
            sweep,
            reaper,
        };
        env.delete_local_ref(class);
        if reaper == Reaper::Queue {
            let queue = JNIString::from(sample_ref::REFERENCE_QUEUE);
            let queue = env.new_object(&*queue, jni_sig!("()V"), &[])?;
            let name = sample_ref::QUEUE;
            refs.set_static(env, name, sample_ref::QUEUE_TYPE, (&queue).into())?;
            env.delete_local_ref(queue);
        }
        Ok(refs)
    }

    pub(crate) fn reaper(&self) -> Reaper {
        self.reaper
    }

    /// Makes one.
    pub(crate) fn new_object<'local>(
        &self,
        env: &mut Env<'local>,
        referent: &JObject<'_>,
        fields: &RefFields,
    ) -> Result<JObject<'local>> {
        let int = |value: u32| jvalue {
            i: value.cast_signed(),
        };
        let arguments = [
            jvalue {
                l: referent.as_raw(),
            },
            jvalue {
                j: fields.uid.cast_signed(),
            },
            jvalue { j: fields.size },
            int(fields.site),
            int(fields.class),
            int(fields.thread),
            int(fields.time),
            jvalue { i: fields.slot },
            jvalue { i: fields.mark },
        ];
        // SAFETY: the constructor is this class's, and takes these types in this order
        // (`sample_ref::CONSTRUCTOR`).
        unsafe { env.new_object_unchecked(&self.class, self.constructor, &arguments) }
    }

    /// Takes collected references out of a chunk ([`Reaper::Scan`]) or the queue ([`Reaper::Queue`], which
    /// looks at no chunk): they are put into `dead`, their places into `places`. Returns how many.
    pub(crate) fn sweep(
        &self,
        env: &mut Env<'_>,
        chunk: &JObjectArray<'_>,
        dead: &JObjectArray<'_>,
        places: &JIntArray<'_>,
    ) -> Result<usize> {
        let reference = |object: jni::sys::jobject| jvalue { l: object };
        let arguments = [
            reference(chunk.as_raw()),
            reference(dead.as_raw()),
            reference(places.as_raw()),
        ];
        let arguments = match self.reaper {
            Reaper::Scan => &arguments[..],
            Reaper::Queue => &arguments[1..],
        };
        let returns = ReturnType::Primitive(Primitive::Int);
        // SAFETY: the method is this class's; the arguments are of the types in `sample_ref::SCAN` or
        // `DRAIN`, whichever the class was made with.
        let count = unsafe {
            env.call_static_method_unchecked(&self.class, self.sweep, returns, arguments)?
        };
        Ok(usize::try_from(count.i()?).unwrap_or(0))
    }

    /// Sets a static field of this type; a reference to an object of another class is refused.
    pub(crate) fn set_static(
        &self,
        env: &mut Env<'_>,
        name: &str,
        signature: &str,
        value: JValue<'_>,
    ) -> Result<()> {
        let (field, kind) = (JNIString::from(name), signature);
        let signature = RuntimeFieldSignature::from_str(signature)?;
        let field = env.get_static_field_id(&self.class, &field, signature.field_signature())?;
        let fits = match value {
            JValue::Int(_) => kind == "I",
            JValue::Long(_) => kind == "J",
            JValue::Object(object) => kind.starts_with(['L', '[']) && fits(env, object, kind)?,
            _ => false,
        };
        if !fits {
            return Err(Error::WrongJValueType("a static field's", "another"));
        }
        // SAFETY: the field is this class's, and of this type, or the JVM would not have found it; the value's
        // type has been compared with it.
        unsafe { env.set_static_field_unchecked(&self.class, field, value) }
    }
}

/// Whether a reference is null or to an object of the type that a signature such as `[J` or `Ljava/lang/Object;` names.
fn fits(env: &mut Env<'_>, object: &JObject<'_>, signature: &str) -> Result<bool> {
    let name = signature
        .strip_prefix('L')
        .and_then(|s| s.strip_suffix(';'));
    let class = env.find_class(JNIString::from(name.unwrap_or(signature)))?;
    let fits = env.is_instance_of(object, &class);
    env.delete_local_ref(class);
    fits
}

/// Whether the heap has room for an array of so many bytes. It looks nothing up, whatever the answer.
pub(crate) fn has_room(env: &mut Env<'_>, bytes: usize) -> bool {
    let raw = env.get_raw();
    let len = jni::sys::jsize::try_from(bytes).unwrap_or(jni::sys::jsize::MAX);
    // SAFETY: the environment is the current thread's, no exception is pending (the caller is the JVM's first call into the
    // agent on this thread), the length is not negative, and the reference is this function's alone.
    unsafe {
        let array = ((**raw).v1_1.NewByteArray)(raw, len);
        if array.is_null() {
            ((**raw).v1_1.ExceptionClear)(raw);
            return false;
        }
        ((**raw).v1_1.DeleteLocalRef)(raw, array);
    }
    true
}

/// Whether the thread is a virtual one. JDK 21 and later know.
pub(crate) struct VirtualThreads {
    known: bool,
}

impl VirtualThreads {
    pub(crate) fn new(env: &Env<'_>) -> Self {
        let known = env
            .version()
            .is_ok_and(|version| version >= JNIVersion::new(JNI_VERSION_21));
        Self { known }
    }

    pub(crate) fn contain(&self, env: &Env<'_>, thread: &JObject<'_>) -> bool {
        if !self.known {
            return false;
        }
        let raw = env.get_raw();
        // SAFETY: the JVM is of JNI version 21 or later, whose table has this function (24 has it at
        // the same place, and only it is read); the
        // environment is the current thread's, the reference is to a thread.
        unsafe { ((**raw).v24.IsVirtualThread)(raw, thread.as_raw()) }
    }
}
