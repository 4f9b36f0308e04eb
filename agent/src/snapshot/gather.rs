//! What a snapshot needs to know before the fork: classes with their fields, threads with their stacks.
//!
//! Ids are given here: each class object, loader and thread is tagged with its id. Local references to all classes are
//! held until [`Held`] goes, so that no class is unloaded meanwhile and each method of theirs stays valid.

use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr::null_mut;

use jni_sys::{jclass, jfieldID, jobject, jvalue};
use jvmti_sys::{jvmtiFrameInfo, jvmtiStackInfo};

use super::image::{
    ClassInfo, FieldInfo, FrameInfo, Gathered, MethodInfo, ObjectLayout, ThreadInfo, kind_of,
};
use crate::jvmti::calls::{Any, Class, Env, Local, Ref};
use crate::jvmti::sys::{as_int, error};
use crate::jvmti::versions::Redefinitions;
use crate::jvmti::{Environment, Jvmti, JvmtiError, Result, call};

/// The first id. It looks as addresses of a heap usually do.
const BASE: u64 = 0x7_0000_0000;
/// Class status: linked. It stays with a class whose initialiser failed.
const PREPARED: c_int = 2;
const ERROR: c_int = 8;
const ARRAY: c_int = 16;
const PRIMITIVE: c_int = 32;
const STATIC: c_int = 8;
/// The most frames of a thread that are in the dump.
pub(super) const DEEPEST: c_int = 1024;

/// Local references that go when this goes.
pub(crate) struct Held<'a, 'local>(&'a Env<'local>);

impl<'a, 'local> Held<'a, 'local> {
    fn new(env: &'a Env<'local>, references: usize) -> Option<Self> {
        let raw = env.raw();
        let capacity = c_int::try_from(references).unwrap_or(c_int::MAX);
        // SAFETY: the environment is the current thread's.
        let pushed = unsafe { ((**raw).v1_2.PushLocalFrame)(raw, capacity) };
        (pushed == 0).then_some(Self(env))
    }
}

impl Drop for Held<'_, '_> {
    fn drop(&mut self) {
        let raw = self.0.raw();
        // SAFETY: the frame was pushed when this was made, by this thread, for an `Env` stays on its thread.
        let _ = unsafe { ((**raw).v1_2.PopLocalFrame)(raw, null_mut()) };
    }
}

/// Classes by their ids, while they are gathered.
pub(super) struct Ids {
    pub(super) next: u64,
    classes: HashMap<u64, usize>,
}

impl Environment {
    /// Asks for all that is known before the fork. The references stay valid until the second result goes.
    pub(crate) fn gather<'a, 'local>(
        &self,
        env: &'a Env<'local>,
    ) -> Result<(Gathered, Held<'a, 'local>)> {
        // SAFETY: it is used within this call, for which the environment is borrowed.
        let jvmti = unsafe { self.jvmti() };
        let held = Held::new(env, 1 << 12).ok_or(JvmtiError(error::NULL_POINTER))?;
        let mut ids = Ids {
            next: BASE,
            classes: HashMap::new(),
        };
        let mut gathered = Gathered {
            base: BASE,
            ..Gathered::default()
        };
        let lists = jvmti.lists_of_virtual_threads(env);
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the pointers are to an int and a pointer.
        unsafe { call!(jvmti, GetLoadedClasses, &raw mut count, &raw mut list)? };
        let count = usize::try_from(count).unwrap_or(0);
        let classes: Vec<jclass> = match list.is_null() {
            true => Vec::new(),
            // SAFETY: the JVM gave a list of so many references, ours until it is given back below.
            false => unsafe { std::slice::from_raw_parts(list, count) }.to_vec(),
        };
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { jvmti.deallocate(list.cast()) };
        // SAFETY: as below.
        unsafe { jvmti.link(env, &classes) };
        // All are tagged before the first asks who its superclass is.
        for (index, &class) in classes.iter().enumerate() {
            // SAFETY: local references, fresh from the JVM, valid until `held` goes.
            let address = unsafe { jvmti.give_id(class, &mut ids.next)? };
            ids.classes.insert(address, index);
        }
        gathered.layout = jvmti.object_layout(env, &classes);
        for &class in &classes {
            // SAFETY: as above.
            let info = unsafe { jvmti.class_info(env, class, &mut ids, &mut gathered.others)? };
            gathered.classes.push(info);
        }
        // SAFETY: as above.
        unsafe { jvmti.hold_fields(env, &classes) };
        let redefinitions = Redefinitions::new(env);
        let counts = || -> Vec<i32> {
            let classes = classes.iter().map(|&class| {
                // SAFETY: as above.
                unsafe { Ref::<Class>::new(class) }
            });
            let counts = classes.map(|class| class.map_or(0, |c| redefinitions.count(env, c)));
            counts.collect()
        };
        let before = counts();
        let mut methods = HashMap::new();
        jvmti.threads(env, &mut methods, &mut ids, &mut gathered)?;
        gathered.reports_virtual_threads = jvmti.reports_virtual_threads();
        // SAFETY: arrays of threads, valid until `held` goes.
        unsafe { jvmti.virtual_stacks(env, &lists, &mut methods, &mut ids, &mut gathered)? };
        let known = methods.into_iter();
        let known = known.filter_map(|(method, info)| Some((method, info?)));
        gathered.methods = known.collect();
        // A class that was redefined meanwhile may have given the lines of other bytecode.
        let after = counts();
        gathered.remove_lines(|class| before.get(class) != after.get(class));
        gathered.next = ids.next;
        Ok((gathered, held))
    }
}

impl Environment {
    /// Where some objects lie: one that was just made, and a class object. `None` if the heap has no room for the first.
    pub(crate) fn heap_addresses(&self, env: &Env<'_>) -> Option<[u64; 2]> {
        let raw = env.raw();
        let address = |reference: jobject| {
            if reference.is_null() {
                // SAFETY: the environment is this thread's.
                unsafe { ((**raw).v1_2.ExceptionClear)(raw) };
                return None;
            }
            // SAFETY: HotSpot's local references are pointers to a slot with the object's address. The address is
            // told, not used: the object may have moved.
            let address = unsafe { reference.cast::<u64>().read_volatile() };
            delete(env, reference);
            Some(address)
        };
        // SAFETY: the environment is this thread's; the text ends with a zero byte.
        let made = unsafe { ((**raw).v1_2.NewStringUTF)(raw, c"heapdiff".as_ptr()) };
        let made = address(made)?;
        // SAFETY: as above, and no exception is pending. The class is loaded, so only a full heap lets this fail.
        let class = unsafe { ((**raw).v1_2.FindClass)(raw, c"java/lang/Object".as_ptr()) };
        Some([made, address(class)?])
    }
}

impl Jvmti {
    /// Tags an object with a new id; one that has an id keeps it.
    ///
    /// # Safety
    /// The reference is valid.
    // SAFETY: what is unsafe in it says so where it stands.
    pub(super) unsafe fn give_id(&self, object: jobject, next: &mut u64) -> Result<u64> {
        // SAFETY: by the caller's promise.
        let known = unsafe { self.id_of(object) };
        if known != 0 {
            return Ok(known);
        }
        let mut size = 0;
        // SAFETY: by the caller's promise; the pointer is to a long.
        unsafe { call!(self, GetObjectSize, object, &raw mut size)? };
        let id = *next;
        // SAFETY: by the caller's promise.
        unsafe { call!(self, SetTag, object, id.cast_signed())? };
        *next += u64::try_from(size).unwrap_or(0).next_multiple_of(8).max(8);
        Ok(id)
    }

    /// The object's tag; 0 for none and for null.
    ///
    /// # Safety
    /// The reference is valid or null.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn id_of(&self, object: jobject) -> u64 {
        let mut tag = 0;
        if !object.is_null() {
            // SAFETY: by the caller's promise; the pointer is to a long. Where it fails the tag stays 0.
            let _ = unsafe { call!(self, GetTag, object, &raw mut tag) };
        }
        tag.cast_unsigned()
    }

    /// Measures the object layout of the JVM: two arrays show how long a reference is, and the sizes of all classes' objects
    /// show the alignment. Returns `None` if the heap has no room for the arrays.
    fn object_layout(&self, env: &Env<'_>, classes: &[jclass]) -> Option<ObjectLayout> {
        /// A multiple of every alignment.
        const ELEMENTS: c_int = 256;
        let raw = env.raw();
        let size = |object: jobject| {
            let mut size = 0;
            // SAFETY: the reference is valid; the pointer is to a long.
            unsafe { call!(self, GetObjectSize, object, &raw mut size) }.ok()?;
            u64::try_from(size).ok()
        };
        // SAFETY: the environment is this thread's; the text ends with a zero byte.
        let class = unsafe { ((**raw).v1_2.FindClass)(raw, c"java/lang/Object".as_ptr()) };
        let array = |length| {
            if class.is_null() {
                return None;
            }
            // SAFETY: the environment is this thread's, the reference is to a class; null is an allowed element.
            let made = unsafe { ((**raw).v1_2.NewObjectArray)(raw, length, class, null_mut()) };
            if made.is_null() {
                // SAFETY: the environment is this thread's.
                unsafe { ((**raw).v1_2.ExceptionClear)(raw) };
                return None;
            }
            let size = size(made);
            delete(env, made);
            size
        };
        let measured = array(0).zip(array(ELEMENTS));
        delete(env, class);
        let (empty, filled) = measured?;
        let reference = filled.checked_sub(empty)? / u64::from(ELEMENTS.unsigned_abs());
        let sizes = classes.iter().filter_map(|&class| size(class));
        let bits = sizes.fold(empty | filled, |bits, size| bits | size);
        let align = 1_u32 << bits.trailing_zeros().min(8);
        Some(ObjectLayout {
            reference: u32::try_from(reference).ok()?,
            align,
        })
    }

    /// Links the boot loader's classes that are not.
    ///
    /// Of a class that is not linked JVMTI tells no fields, and no object can be made. But the JVM's archive has objects of
    /// such classes. Linking changes nothing that a program sees; asking for the declared fields does it. Only public fields
    /// are asked for: the JVM loads the types of those that it tells, and they stay loaded.
    ///
    /// # Safety
    /// The references are to classes.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn link(&self, env: &Env<'_>, classes: &[jclass]) {
        let raw = env.raw();
        // SAFETY: the environment is this thread's; the texts end with a zero byte; the method takes a boolean and
        // returns an object, and is called on class objects.
        unsafe {
            let of = ((**raw).v1_2.FindClass)(raw, c"java/lang/Class".as_ptr());
            let full = if of.is_null() {
                null_mut()
            } else {
                ((**raw).v1_2.FindClass)(raw, c"java/lang/OutOfMemoryError".as_ptr())
            };
            if !full.is_null() {
                let (name, signature) = (c"getDeclaredFields0", c"(Z)[Ljava/lang/reflect/Field;");
                let method = ((**raw).v1_2.GetMethodID)(raw, of, name.as_ptr(), signature.as_ptr());
                for &class in classes.iter().filter(|_| !method.is_null()) {
                    let (mut status, mut loader) = (0, null_mut());
                    let known = call!(self, GetClassStatus, class, &raw mut status)
                        .and_then(|()| call!(self, GetClassLoader, class, &raw mut loader));
                    let is_boot = known.is_ok() && loader.is_null();
                    delete(env, loader);
                    if is_boot && status & (PREPARED | ERROR | ARRAY | PRIMITIVE) == 0 {
                        let public = jvalue { z: true };
                        let fields =
                            ((**raw).v1_2.CallObjectMethodA)(raw, class, method, &raw const public);
                        let thrown = ((**raw).v1_2.ExceptionOccurred)(raw);
                        if thrown.is_null() {
                            delete(env, fields);
                            continue;
                        }
                        ((**raw).v1_2.ExceptionClear)(raw);
                        let is_full = ((**raw).v1_2.IsInstanceOf)(raw, thrown, full);
                        delete(env, thrown);
                        // In a full heap the others would fail as well, and each failure is an error to the program's JVM.
                        if is_full {
                            break;
                        }
                    }
                }
            }
            ((**raw).v1_2.ExceptionClear)(raw);
            delete(env, full);
            delete(env, of);
        }
    }

    /// Holds what class objects refer to by their own fields, such as their names, of which the walk tells nothing: held
    /// by this thread it is reached.
    ///
    /// # Safety
    /// The references are to classes.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn hold_fields(&self, env: &Env<'_>, classes: &[jclass]) {
        let raw = env.raw();
        // SAFETY: the environment is this thread's; the fields are those of `java.lang.Class`, not static, and of
        // types that are no primitives.
        unsafe {
            let of = ((**raw).v1_2.FindClass)(raw, c"java/lang/Class".as_ptr());
            if of.is_null() {
                ((**raw).v1_2.ExceptionClear)(raw);
                return;
            }
            let (infos, fields) = self.fields(of).unwrap_or_default();
            let held: Vec<jfieldID> = infos
                .iter()
                .zip(fields)
                .filter(|(info, _)| !info.is_static && info.kind == kind_of("L"))
                .map(|(_, field)| field)
                .collect();
            for &class in classes {
                for &field in &held {
                    // Local references stay until the frame goes.
                    let _ = ((**raw).v1_2.GetObjectField)(raw, class, field);
                }
            }
            delete(env, of);
        }
    }

    /// # Safety
    /// The reference is to a class.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn class_info(
        &self,
        env: &Env<'_>,
        class: jclass,
        ids: &mut Ids,
        others: &mut Vec<u64>,
    ) -> Result<ClassInfo> {
        // SAFETY: by the caller's promise.
        let reference = unsafe { Ref::<Class>::new(class) };
        let reference = reference.ok_or(JvmtiError(error::NULL_POINTER))?;
        let mut info = ClassInfo {
            // SAFETY: by the caller's promise.
            address: unsafe { self.id_of(class) },
            signature: self.class_signature(reference)?,
            ..ClassInfo::default()
        };
        let mut status = 0;
        // SAFETY: by the caller's promise; the pointer is to an int.
        unsafe { call!(self, GetClassStatus, class, &raw mut status)? };
        info.linked = status & PREPARED != 0 && status & (ARRAY | PRIMITIVE) == 0;
        let raw = env.raw();
        // SAFETY: the environment is this thread's, the reference is to a class.
        let above = unsafe { ((**raw).v1_2.GetSuperclass)(raw, class) };
        // SAFETY: fresh from the JVM, or null.
        info.superclass = ids.classes.get(&unsafe { self.id_of(above) }).copied();
        delete(env, above);
        let mut loader = null_mut();
        // SAFETY: by the caller's promise; the pointer is to a pointer.
        if unsafe { call!(self, GetClassLoader, class, &raw mut loader) }.is_ok()
            && !loader.is_null()
        {
            let before = ids.next;
            // SAFETY: fresh from the JVM.
            info.loader = unsafe { self.give_id(loader, &mut ids.next)? };
            if info.loader == before {
                others.push(before);
            }
            delete(env, loader);
        }
        if status & PREPARED == 0 {
            return Ok(info);
        }
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: by the caller's promise; the pointers are to an int and a pointer.
        if unsafe {
            call!(
                self,
                GetImplementedInterfaces,
                class,
                &raw mut count,
                &raw mut list
            )
        }
        .is_ok()
            && !list.is_null()
        {
            let count = usize::try_from(count).unwrap_or(0);
            // SAFETY: the JVM gave a list of so many references, ours until it is given back below.
            let interfaces: &[jclass] = unsafe { std::slice::from_raw_parts(list, count) };
            for &interface in interfaces {
                // SAFETY: fresh from the JVM.
                let id = unsafe { self.id_of(interface) };
                info.interfaces.extend(ids.classes.get(&id));
                delete(env, interface);
            }
            // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
            unsafe { self.deallocate(list.cast()) };
        }
        // SAFETY: by the caller's promise.
        info.fields = unsafe { self.fields(class)?.0 };
        Ok(info)
    }

    /// # Safety
    /// The reference is to a class.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn fields(&self, class: jclass) -> Result<(Vec<FieldInfo>, Vec<jfieldID>)> {
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: by the caller's promise; the pointers are to an int and a pointer.
        let asked = unsafe { call!(self, GetClassFields, class, &raw mut count, &raw mut list) };
        // Array classes have none.
        if asked.is_err() || list.is_null() {
            return Ok(Default::default());
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the JVM gave a list of so many fields, ours until it is given back below.
        let fields: Vec<jfieldID> = unsafe { std::slice::from_raw_parts(list, count) }.to_vec();
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        let mut infos = Vec::with_capacity(count);
        for &field in &fields {
            let (mut name, mut signature, mut modifiers) = (null_mut(), null_mut(), 0);
            // SAFETY: a field of this class; the generic signature is not asked for.
            let (name, signature) = unsafe {
                call!(self, GetFieldModifiers, class, field, &raw mut modifiers)?;
                call!(
                    self,
                    GetFieldName,
                    class,
                    field,
                    &raw mut name,
                    &raw mut signature,
                    null_mut()
                )?;
                (self.text(name), self.text(signature))
            };
            infos.push(FieldInfo {
                name: name.unwrap_or_default(),
                kind: kind_of(&signature.unwrap_or_default()),
                is_static: modifiers & STATIC != 0,
            });
        }
        Ok((infos, fields))
    }

    /// Threads, and their stacks as they are at one moment.
    fn threads(
        &self,
        env: &Env<'_>,
        methods: &mut Methods,
        ids: &mut Ids,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let mut own = null_mut();
        // SAFETY: the pointer is to a pointer.
        unsafe { call!(self, GetCurrentThread, &raw mut own)? };
        // SAFETY: fresh from the JVM.
        let own_id = unsafe { self.give_id(own, &mut ids.next)? };
        delete(env, own);
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the pointers are to a pointer and an int.
        unsafe {
            call!(
                self,
                GetAllStackTraces,
                DEEPEST,
                &raw mut list,
                &raw mut count
            )?
        };
        if list.is_null() {
            return Ok(());
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the JVM gave a list of so many stacks, ours until it is given back below.
        let stacks: &[jvmtiStackInfo] = unsafe { std::slice::from_raw_parts(list, count) };
        for stack in stacks {
            // SAFETY: fresh from the JVM.
            let address = unsafe { self.give_id(stack.thread, &mut ids.next)? };
            let count = usize::try_from(stack.frame_count).unwrap_or(0);
            let frames: &[jvmtiFrameInfo] = match stack.frame_buffer.is_null() {
                true => &[],
                // SAFETY: the JVM gave so many frames with the list.
                false => unsafe { std::slice::from_raw_parts(stack.frame_buffer, count) },
            };
            let frames = frames
                .iter()
                .filter_map(|frame| {
                    // SAFETY: all classes are held, and their methods with them.
                    let method = unsafe { self.known_method(env, frame, methods, ids) };
                    Some(method?.frame_at(frame.location))
                })
                .collect();
            gathered.threads.push(ThreadInfo {
                address,
                frames,
                own: address == own_id,
            });
            delete(env, stack.thread);
        }
        if !gathered.threads.iter().any(|thread| thread.own) {
            gathered.threads.push(ThreadInfo {
                address: own_id,
                frames: Vec::new(),
                own: true,
            });
        }
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        Ok(())
    }

    /// Returns the method of a frame, or `None` if its class was loaded after the classes were gathered.
    ///
    /// # Safety
    /// All classes that are known by their ids are held.
    // SAFETY: what is unsafe in it says so where it stands.
    pub(super) unsafe fn known_method<'m>(
        &self,
        env: &Env<'_>,
        frame: &jvmtiFrameInfo,
        methods: &'m mut Methods,
        ids: &Ids,
    ) -> Option<&'m MethodInfo> {
        let method = methods
            .entry(frame.method.addr())
            // SAFETY: by the caller's promise their methods are valid. A method of a class that was loaded since is refused,
            // for the class has no id. The JVM checks ids of methods.
            .or_insert_with(|| unsafe { self.method_of(env, frame, ids) });
        method.as_ref()
    }

    /// # Safety
    /// The method's class is loaded.
    // SAFETY: what is unsafe in it says so where it stands.
    unsafe fn method_of(
        &self,
        env: &Env<'_>,
        frame: &jvmtiFrameInfo,
        ids: &Ids,
    ) -> Option<MethodInfo> {
        let method: as_int::MethodId = frame.method.cast();
        let mut class = null_mut();
        // SAFETY: the method is valid by the caller's promise; the pointer is to a pointer.
        unsafe { call!(self, GetMethodDeclaringClass, method, &raw mut class).ok()? };
        // SAFETY: fresh from the JVM.
        let known = ids.classes.get(&unsafe { self.id_of(class) }).copied();
        let mut file = null_mut();
        // SAFETY: the class is valid; the pointer is to a pointer. What is not given stays null.
        let _ = unsafe { call!(self, GetSourceFileName, class, &raw mut file) };
        // SAFETY: what the JVM has just given, or null.
        let file = unsafe { self.text(file) };
        delete(env, class);
        let known = known?;
        let (mut name, mut signature) = (null_mut(), null_mut());
        // SAFETY: the method is valid; its generic signature is not asked for.
        unsafe {
            call!(
                self,
                GetMethodName,
                method,
                &raw mut name,
                &raw mut signature,
                null_mut()
            )
            .ok()?;
        }
        let mut is_native = 0;
        // SAFETY: the method is valid; the pointer is to a byte. If it fails the byte stays 0.
        let _ = unsafe { call!(self, IsMethodNative, method, &raw mut is_native) };
        // SAFETY: what the JVM has just given.
        let (name, signature) = unsafe { (self.text(name), self.text(signature)) };
        Some(MethodInfo {
            frame: FrameInfo {
                class: known,
                method: name.unwrap_or_default(),
                signature: signature.unwrap_or_default(),
                file,
                line: 0,
            },
            is_native: is_native != 0,
            // SAFETY: as above, the method is valid.
            lines: unsafe { self.lines(method) },
        })
    }
}

/// Methods by their ids; `None` for those of classes that are not known.
pub(super) type Methods = HashMap<usize, Option<MethodInfo>>;

/// Gives a local reference back.
pub(super) fn delete(env: &Env<'_>, reference: jobject) {
    // SAFETY: local references, fresh from the JVM and owned by nobody else, or null.
    drop(unsafe { Local::<Any>::new(env, reference) });
}
