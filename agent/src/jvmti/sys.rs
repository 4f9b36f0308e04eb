//! Additions to the crate `jvmti-sys`: functions and events that JDK 11 added to JVMTI, and function types that have
//! integers in place of enums.
//!
//! A JVM may return error codes and events that the enums of `jvmti-sys` do not contain. A Rust enum must not hold such
//! values. So functions that take or return error codes or events are cast to function types with integers
//! ([`as_int`]).

use std::ffi::{c_char, c_int, c_void};

use jni_sys::{JNIEnv, jclass, jfieldID, jint, jlong, jobject};
use jvmti_sys::{
    jrawMonitorID, jvmtiCapabilities, jvmtiEnv, jvmtiEventCallbacks, jvmtiFrameInfo,
    jvmtiInterface_1, jvmtiLineNumberEntry, jvmtiStackInfo, jvmtiThreadInfo,
};

/// JVMTI version of JDK 11.
pub(crate) const VERSION_11: jint = 0x300B_0000;
/// JVMTI version of JDK 17.
pub(crate) const VERSION_17: jint = 0x3011_0000;
pub(crate) const VERSION_21: jint = 0x3015_0000;

/// JVMTI's function table, with the function that JDK 11 added at its end (slot 156, counted from 1).
#[repr(C)]
pub(crate) struct Interface {
    pub(crate) base: jvmtiInterface_1,
    pub(crate) set_heap_sampling_interval: Option<SetInterval>,
}

/// JVMTI's table of event callbacks, up to `SampledObjectAlloc`.
#[repr(C)]
pub(crate) struct Callbacks {
    pub(crate) base: jvmtiEventCallbacks,
    /// JVMTI reserves the event with the number 85.
    pub(crate) reserved: Option<unsafe extern "C" fn()>,
    pub(crate) sampled_object_alloc: Option<SampledObjectAlloc>,
}

pub(crate) type SetInterval = unsafe extern "C" fn(*mut jvmtiEnv, jint) -> jint;
pub(crate) type SampledObjectAlloc =
    unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, jobject, jobject, jclass, jlong);

/// Function types with integers in place of enums, and const pointers to data that is only read.
pub(crate) mod as_int {
    use super::*;

    pub(crate) type AddCapabilities =
        unsafe extern "C" fn(*mut jvmtiEnv, *const jvmtiCapabilities) -> c_int;
    pub(crate) type GetCapabilities =
        unsafe extern "C" fn(*mut jvmtiEnv, *mut jvmtiCapabilities) -> c_int;
    pub(crate) type GetPotentialCapabilities = GetCapabilities;
    pub(crate) type SetEventCallbacks =
        unsafe extern "C" fn(*mut jvmtiEnv, *const jvmtiEventCallbacks, jint) -> c_int;
    pub(crate) type SetEventNotificationMode =
        unsafe extern "C" fn(*mut jvmtiEnv, c_int, c_int, jobject, ...) -> c_int;
    pub(crate) type GetStackTrace = unsafe extern "C" fn(
        *mut jvmtiEnv,
        jobject,
        jint,
        jint,
        *mut jvmtiFrameInfo,
        *mut jint,
    ) -> c_int;
    pub(crate) type MethodId = *mut jni_sys::_jmethodID;
    pub(crate) type GetMethodName = unsafe extern "C" fn(
        *mut jvmtiEnv,
        MethodId,
        *mut *mut c_char,
        *mut *mut c_char,
        *mut *mut c_char,
    ) -> c_int;
    pub(crate) type GetMethodDeclaringClass =
        unsafe extern "C" fn(*mut jvmtiEnv, MethodId, *mut jclass) -> c_int;
    pub(crate) type GetClassSignature =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut *mut c_char, *mut *mut c_char) -> c_int;
    pub(crate) type GetSourceFileName =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut *mut c_char) -> c_int;
    pub(crate) type GetLineNumberTable = unsafe extern "C" fn(
        *mut jvmtiEnv,
        MethodId,
        *mut jint,
        *mut *mut jvmtiLineNumberEntry,
    ) -> c_int;
    pub(crate) type GetClassLoader =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut jobject) -> c_int;
    pub(crate) type GetThreadInfo =
        unsafe extern "C" fn(*mut jvmtiEnv, jobject, *mut jvmtiThreadInfo) -> c_int;
    pub(crate) type Deallocate = unsafe extern "C" fn(*mut jvmtiEnv, *mut u8) -> c_int;
    pub(crate) type GetLoadedClasses =
        unsafe extern "C" fn(*mut jvmtiEnv, *mut jint, *mut *mut jclass) -> c_int;
    pub(crate) type GetAllThreads =
        unsafe extern "C" fn(*mut jvmtiEnv, *mut jint, *mut *mut jobject) -> c_int;
    pub(crate) type GetClassStatus =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut jint) -> c_int;
    pub(crate) type GetImplementedInterfaces =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut jint, *mut *mut jclass) -> c_int;
    pub(crate) type GetClassFields =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut jint, *mut *mut jfieldID) -> c_int;
    pub(crate) type GetFieldName = unsafe extern "C" fn(
        *mut jvmtiEnv,
        jclass,
        jfieldID,
        *mut *mut c_char,
        *mut *mut c_char,
        *mut *mut c_char,
    ) -> c_int;
    pub(crate) type GetFieldModifiers =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, jfieldID, *mut jint) -> c_int;
    pub(crate) type GetCurrentThread = unsafe extern "C" fn(*mut jvmtiEnv, *mut jobject) -> c_int;
    pub(crate) type GetAllStackTraces =
        unsafe extern "C" fn(*mut jvmtiEnv, jint, *mut *mut jvmtiStackInfo, *mut jint) -> c_int;
    pub(crate) type GetThreadListStackTraces = unsafe extern "C" fn(
        *mut jvmtiEnv,
        jint,
        *const jobject,
        jint,
        *mut *mut jvmtiStackInfo,
    ) -> c_int;
    pub(crate) type GetObjectSize =
        unsafe extern "C" fn(*mut jvmtiEnv, jobject, *mut jlong) -> c_int;
    pub(crate) type GetTag = GetObjectSize;
    pub(crate) type IsMethodNative =
        unsafe extern "C" fn(*mut jvmtiEnv, MethodId, *mut u8) -> c_int;
    pub(crate) type GetClassMethods =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut jint, *mut *mut MethodId) -> c_int;
    pub(crate) type GetVersionNumber = unsafe extern "C" fn(*mut jvmtiEnv, *mut jint) -> c_int;
    pub(crate) type SetTag = unsafe extern "C" fn(*mut jvmtiEnv, jobject, jlong) -> c_int;
    pub(crate) type FollowReferences = unsafe extern "C" fn(
        *mut jvmtiEnv,
        jint,
        jclass,
        jobject,
        *const c_void,
        *mut c_void,
    ) -> c_int;
    pub(crate) type IsModifiableClass =
        unsafe extern "C" fn(*mut jvmtiEnv, jclass, *mut u8) -> c_int;
    pub(crate) type RetransformClasses =
        unsafe extern "C" fn(*mut jvmtiEnv, jint, *const jclass) -> c_int;
    pub(crate) type Allocate = unsafe extern "C" fn(*mut jvmtiEnv, jlong, *mut *mut u8) -> c_int;
    pub(crate) type DisposeEnvironment = unsafe extern "C" fn(*mut jvmtiEnv) -> c_int;
    pub(crate) type ForceGarbageCollection = DisposeEnvironment;
    pub(crate) type CreateRawMonitor =
        unsafe extern "C" fn(*mut jvmtiEnv, *const c_char, *mut jrawMonitorID) -> c_int;
    pub(crate) type RawMonitorEnter = unsafe extern "C" fn(*mut jvmtiEnv, jrawMonitorID) -> c_int;
    pub(crate) type RawMonitorExit = RawMonitorEnter;
    pub(crate) type RawMonitorNotifyAll = RawMonitorEnter;
    pub(crate) type RawMonitorWait =
        unsafe extern "C" fn(*mut jvmtiEnv, jrawMonitorID, jlong) -> c_int;
    pub(crate) type AgentThread = unsafe extern "C" fn(*mut jvmtiEnv, *mut JNIEnv, *mut c_void);
    pub(crate) type RunAgentThread = unsafe extern "C" fn(
        *mut jvmtiEnv,
        jobject,
        Option<AgentThread>,
        *const c_void,
        jint,
    ) -> c_int;
}

/// Numbers of JVMTI events.
pub(crate) mod event {
    use std::ffi::c_int;

    pub(crate) const VM_INIT: c_int = 50;
    pub(crate) const VM_DEATH: c_int = 51;
    pub(crate) const THREAD_START: c_int = 52;
    pub(crate) const THREAD_END: c_int = 53;
    pub(crate) const CLASS_FILE_LOAD_HOOK: c_int = 54;
    pub(crate) const CLASS_LOAD: c_int = 55;
    pub(crate) const RESOURCE_EXHAUSTED: c_int = 80;
    pub(crate) const GARBAGE_COLLECTION_START: c_int = 81;
    pub(crate) const GARBAGE_COLLECTION_FINISH: c_int = 82;
    pub(crate) const SAMPLED_OBJECT_ALLOC: c_int = 86;
}

/// Numbers of JVMTI errors.
pub(crate) mod error {
    use std::ffi::c_int;

    pub(crate) const INVALID_CLASS: c_int = 21;
    pub(crate) const FAILS_VERIFICATION: c_int = 62;
    pub(crate) const UNMODIFIABLE_CLASS: c_int = 79;
    pub(crate) const NOT_AVAILABLE: c_int = 98;
    pub(crate) const NULL_POINTER: c_int = 100;
}

/// Bit numbers of JVMTI capabilities.
pub mod capability {
    /// `can_generate_garbage_collection_events`
    pub const GARBAGE_COLLECTION_EVENTS: u32 = 31;
    /// `can_tag_objects`
    pub const TAG_OBJECTS: u32 = 0;
    /// `can_get_source_file_name`
    pub const SOURCE_FILE_NAME: u32 = 11;
    /// `can_get_line_numbers`
    pub const LINE_NUMBERS: u32 = 12;
    /// `can_retransform_classes`
    pub const RETRANSFORM_CLASSES: u32 = 37;
    /// `can_generate_resource_exhaustion_heap_events`
    pub const RESOURCE_EXHAUSTION_HEAP_EVENTS: u32 = 39;
    /// `can_generate_sampled_object_alloc_events`
    pub const SAMPLED_OBJECT_ALLOC_EVENTS: u32 = 43;
    /// `can_support_value_objects`, in JDK 28 with preview features
    pub const VALUE_OBJECTS: u32 = 45;
}

/// Creates a set of capabilities from bit numbers.
pub(crate) fn capabilities(bits: &[u32]) -> jvmtiCapabilities {
    let mut set = jvmtiCapabilities::default();
    for bit in bits {
        let mask = 1 << (bit % 32);
        match bit / 32 {
            0 => set._bindgen_bitfield_1_ |= mask,
            _ => set._bindgen_bitfield_2_ |= mask,
        }
    }
    set
}

/// True if the set has the capability with this bit number.
pub(crate) fn has_capability(set: &jvmtiCapabilities, bit: u32) -> bool {
    let wanted = capabilities(&[bit]);
    set._bindgen_bitfield_1_ & wanted._bindgen_bitfield_1_ != 0
        || set._bindgen_bitfield_2_ & wanted._bindgen_bitfield_2_ != 0
}

/// Offsets and sizes in JVMTI's structures. A test compares them with the JDK's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each name belongs to the field at this offset of the table"
)]
pub struct Places {
    pub set_heap_sampling_interval: usize,
    pub get_stack_trace: usize,
    pub set_event_callbacks: usize,
    pub set_event_notification_mode: usize,
    pub run_agent_thread: usize,
    pub get_line_number_table: usize,
    pub interface_size: usize,
    pub vm_init: usize,
    pub class_load: usize,
    pub garbage_collection_start: usize,
    pub garbage_collection_finish: usize,
    pub sampled_object_alloc: usize,
    pub callbacks_size: usize,
    pub capabilities_size: usize,
    pub frame_info_size: usize,
    pub thread_info_size: usize,
}

impl Places {
    /// Returns the offsets and sizes that this crate uses.
    #[must_use]
    pub const fn own_layout() -> Self {
        use std::mem::{offset_of, size_of};
        Self {
            set_heap_sampling_interval: offset_of!(Interface, set_heap_sampling_interval),
            get_stack_trace: offset_of!(jvmtiInterface_1, GetStackTrace),
            set_event_callbacks: offset_of!(jvmtiInterface_1, SetEventCallbacks),
            set_event_notification_mode: offset_of!(jvmtiInterface_1, SetEventNotificationMode),
            run_agent_thread: offset_of!(jvmtiInterface_1, RunAgentThread),
            get_line_number_table: offset_of!(jvmtiInterface_1, GetLineNumberTable),
            interface_size: size_of::<Interface>(),
            vm_init: offset_of!(jvmtiEventCallbacks, VMInit),
            class_load: offset_of!(jvmtiEventCallbacks, ClassLoad),
            garbage_collection_start: offset_of!(jvmtiEventCallbacks, GarbageCollectionStart),
            garbage_collection_finish: offset_of!(jvmtiEventCallbacks, GarbageCollectionFinish),
            sampled_object_alloc: offset_of!(Callbacks, sampled_object_alloc),
            callbacks_size: size_of::<Callbacks>(),
            capabilities_size: size_of::<jvmtiCapabilities>(),
            frame_info_size: size_of::<jvmtiFrameInfo>(),
            thread_info_size: size_of::<jvmtiThreadInfo>(),
        }
    }
}
