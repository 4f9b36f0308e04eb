//! The Java class of samples, `heapdiff.SampleRef`. Its source is in `java/`.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use jni_sys::{jfieldID, jmethodID, jobject, jvalue};

use crate::java;
use crate::jvmti::calls::{
    Class, Env, Global, Ints, JniError, Local, Longs, Objects, Ref, Result, jni,
};

const CONSTRUCTOR: &str = "(Ljava/lang/Object;JJIIIIII)V";
const SWEEP: &str = "sweep";
const SCAN: &str = "([Ljava/lang/Object;[Ljava/lang/Object;[I)I";
const DRAIN: &str = "([Ljava/lang/Object;[I)I";
const QUEUE: &str = "queue";

const REFERENCE_QUEUE: &str = "java/lang/ref/ReferenceQueue";
const QUEUE_TYPE: &str = "Ljava/lang/ref/ReferenceQueue;";

/// The way in which the agent finds out which objects were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaper {
    /// The agent checks each reference with `Reference.refersTo(null)`.
    Scan,
    /// The JVM puts the references to collected objects into a reference queue.
    Queue,
}

impl Reaper {
    /// Returns [`Self::Scan`] if this JVM has `Reference.refersTo` (JDK 16 and later).
    pub(crate) fn for_jvm(env: &Env<'_>) -> Result<Self> {
        let class = env.class(c"java/lang/ref/Reference")?;
        let named = (c"refersTo", c"(Ljava/lang/Object;)Z");
        if env.has_method(class.get(), named)? {
            Ok(Self::Scan)
        } else {
            Ok(Self::Queue)
        }
    }
}

/// The class `heapdiff.SampleRef`, defined in the boot loader.
pub(crate) struct RefClass {
    class: &'static Global<Class>,
    constructor: Method,
    sweep: Method,
    reaper: Reaper,
}

/// The class, and the way in which the agent finds collected objects. Set when the class is defined, which is possible
/// only once.
static DEFINED: OnceLock<(Global<Class>, Reaper)> = OnceLock::new();

/// A method's id.
#[derive(Clone, Copy)]
struct Method(jmethodID);

// SAFETY: a method id belongs to no particular thread.
unsafe impl Send for Method {}
// SAFETY: a method id belongs to no particular thread.
unsafe impl Sync for Method {}

/// Arguments of the constructor of `heapdiff.SampleRef`.
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

/// The new value of a static field.
#[derive(Clone, Copy)]
pub(crate) enum Static<'a> {
    Int(i32),
    Long(i64),
    Objects(Ref<'a, Objects>),
    Ints(Ref<'a, Ints>),
    Longs(Ref<'a, Longs>),
}

impl Static<'_> {
    /// Returns the signature of the field's type.
    const fn signature(&self) -> &'static CStr {
        match self {
            Static::Int(_) => c"I",
            Static::Long(_) => c"J",
            Static::Objects(_) => c"[Ljava/lang/Object;",
            Static::Ints(_) => c"[I",
            Static::Longs(_) => c"[J",
        }
    }
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| JniError::Unfit(text.to_owned()))
}

const fn sweep_signature(reaper: Reaper) -> &'static str {
    match reaper {
        Reaper::Scan => SCAN,
        Reaper::Queue => DRAIN,
    }
}

impl RefClass {
    /// Defines the class, unless an earlier call did. An earlier call may have failed after the definition because the
    /// heap was full.
    pub(crate) fn define(env: &Env<'_>, reaper: Reaper) -> Result<Self> {
        let (class, reaper) = match DEFINED.get() {
            Some(defined) => defined,
            None => {
                let defined = Self::defined(env, reaper)?;
                DEFINED.get_or_init(|| defined)
            }
        };
        let (sweep, of) = (text(SWEEP)?, class.get());
        let sweep_type = text(sweep_signature(*reaper))?;
        let refs = Self {
            class,
            constructor: Method(env.method(of, (c"<init>", &text(CONSTRUCTOR)?))?),
            sweep: Method(env.static_method(of, (&sweep, &sweep_type))?),
            reaper: *reaper,
        };
        if *reaper == Reaper::Queue {
            let queue = env.class(&text(REFERENCE_QUEUE)?)?;
            let queue = env.construct(queue.get(), c"()V", &[])?;
            let (name, signature) = (text(QUEUE)?, text(QUEUE_TYPE)?);
            let field = refs.static_field(env, &name, &signature)?;
            // SAFETY: the field belongs to this class, and its type is the class of the new object.
            unsafe {
                jni!(
                    env.raw(),
                    v1_1.SetStaticObjectField,
                    of.raw(),
                    field,
                    queue.raw()
                );
            }
            env.check()?;
        }
        Ok(refs)
    }

    /// Defines the class. Returns the class, and the way in which the agent finds collected objects. An earlier call
    /// may have defined the class although it threw for lack of memory. Then this call gets a `LinkageError` and uses
    /// the existing class.
    fn defined(env: &Env<'_>, reaper: Reaper) -> Result<(Global<Class>, Reaper)> {
        let name = text(heapdiff_sites::CLASS_INTERNAL)?;
        let bytes = java::sample_ref(reaper == Reaper::Queue);
        let bytes = bytes.map_err(|why| JniError::Unfit(why.to_string()))?;
        match env.define_class(&name, &bytes) {
            Ok(class) => Ok((class.new_global_ref(env)?, reaper)),
            Err(JniError::Thrown(thrown)) if thrown == "java.lang.LinkageError" => {
                let class = env.class(&name)?;
                let sweep = text(SWEEP)?;
                for kind in [reaper, Reaper::Scan, Reaper::Queue] {
                    let named = (&*sweep, &*text(sweep_signature(kind))?);
                    match env.static_method(class.get(), named) {
                        Ok(_) => return Ok((class.new_global_ref(env)?, kind)),
                        Err(JniError::HeapFull) => return Err(JniError::HeapFull),
                        Err(_) => {}
                    }
                }
                Err(JniError::Thrown(thrown))
            }
            Err(other) => Err(other),
        }
    }

    pub(crate) fn reaper(&self) -> Reaper {
        self.reaper
    }

    /// Creates a sample object.
    pub(crate) fn new_object<'local>(
        &self,
        env: &Env<'local>,
        referent: Ref<'_>,
        fields: &RefFields,
    ) -> Result<Local<'local>> {
        let int = |value: u32| jvalue {
            i: value.cast_signed(),
        };
        let arguments = [
            jvalue { l: referent.raw() },
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
        let (class, constructor) = (self.class.get().raw(), self.constructor.0);
        // SAFETY: the constructor belongs to this class and takes these types in this order (`CONSTRUCTOR`).
        unsafe {
            let made = jni!(
                env.raw(),
                v1_1.NewObjectA,
                class,
                constructor,
                arguments.as_ptr()
            );
            env.take_non_null(made, "a sample")
        }
    }

    /// Removes references to collected objects from a chunk of the table ([`Reaper::Scan`]) or from the reference queue
    /// ([`Reaper::Queue`], which ignores the chunk). Stores the references in `dead` and the numbers of their slots in
    /// `places`. Returns the number of stored references.
    pub(crate) fn sweep(
        &self,
        env: &Env<'_>,
        chunk: Ref<'_, Objects>,
        dead: Ref<'_, Objects>,
        places: Ref<'_, Ints>,
    ) -> Result<usize> {
        let reference = |object: jobject| jvalue { l: object };
        let arguments = [
            reference(chunk.raw()),
            reference(dead.raw()),
            reference(places.raw()),
        ];
        let arguments = match self.reaper {
            Reaper::Scan => &arguments[..],
            Reaper::Queue => &arguments[1..],
        };
        let (class, sweep) = (self.class.get().raw(), self.sweep.0);
        // SAFETY: the method belongs to this class. The arguments have the types in its signature, which is `SCAN` or
        // `DRAIN`.
        let count = unsafe {
            jni!(
                env.raw(),
                v1_1.CallStaticIntMethodA,
                class,
                sweep,
                arguments.as_ptr()
            )
        };
        env.check()?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    fn static_field(&self, env: &Env<'_>, name: &CStr, signature: &CStr) -> Result<jfieldID> {
        let class = self.class.get().raw();
        let (field, kind) = (name.as_ptr(), signature.as_ptr());
        // SAFETY: the environment belongs to the current thread, the reference is to a class, and the strings are
        // NUL-terminated.
        let field = unsafe { jni!(env.raw(), v1_1.GetStaticFieldID, class, field, kind) };
        env.check()?;
        if field.is_null() {
            Err(JniError::Unfit(name.to_string_lossy().into_owned()))
        } else {
            Ok(field)
        }
    }

    /// Sets a static field whose type is the type of `value`.
    pub(crate) fn set(&self, env: &Env<'_>, name: &str, value: Static<'_>) -> Result<()> {
        let field = self.static_field(env, &text(name)?, value.signature())?;
        let (raw, class) = (env.raw(), self.class.get().raw());
        let object = match value {
            Static::Int(value) => {
                // SAFETY: the JVM found the field in this class with this type.
                unsafe { jni!(raw, v1_1.SetStaticIntField, class, field, value) };
                return env.check();
            }
            Static::Long(value) => {
                // SAFETY: the JVM found the field in this class with this type.
                unsafe { jni!(raw, v1_1.SetStaticLongField, class, field, value) };
                return env.check();
            }
            Static::Objects(array) => array.raw(),
            Static::Ints(array) => array.raw(),
            Static::Longs(array) => array.raw(),
        };
        // SAFETY: the JVM found the field in this class with this type. The reference is to an object of this type.
        unsafe { jni!(raw, v1_1.SetStaticObjectField, class, field, object) };
        env.check()
    }
}
