//! Collects the data that a snapshot needs before the fork: classes with their fields, and threads with their stacks.
//!
//! This module also assigns ids: each class object, class loader and thread is tagged with its id. Local references to
//! all classes are held until [`Held`] is dropped. No class can be unloaded before that, so all their method ids stay
//! valid.

use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr::null_mut;

use jni_sys::{jclass, jfieldID, jobject, jvalue};
use jvmti_sys::{jvmtiFrameInfo, jvmtiStackInfo};

use super::Prepared;
use super::image::{
    ClassInfo, FieldInfo, FrameInfo, Gathered, MethodInfo, ObjectLayout, ThreadInfo, kind_of,
};
use crate::jvmti::calls::{Any, Class, Env, Local, Ref};
use crate::jvmti::sys::{as_int, error};
use crate::jvmti::versions::Redefinitions;
use crate::jvmti::{Environment, Jvmti, JvmtiError, Result, call};

/// The first id that is assigned to an object. It has the form of a usual heap address.
const BASE: u64 = 0x7_0000_0000;
/// JVMTI's class status: linked. A class keeps this status if its initializer fails.
const PREPARED: c_int = 2;
const ERROR: c_int = 8;
const ARRAY: c_int = 16;
const PRIMITIVE: c_int = 32;
const STATIC: c_int = 8;
/// Maximum number of frames per thread in the dump.
pub(super) const DEEPEST: c_int = 1024;

/// A JNI local frame. Its local references are released when it is dropped.
pub(crate) struct Held<'a, 'local>(&'a Env<'local>);

impl<'a, 'local> Held<'a, 'local> {
    fn new(env: &'a Env<'local>, references: usize) -> Option<Self> {
        let raw = env.raw();
        let capacity = c_int::try_from(references).unwrap_or(c_int::MAX);
        // SAFETY: the environment belongs to the current thread.
        let pushed = unsafe { ((**raw).v1_2.PushLocalFrame)(raw, capacity) };
        (pushed == 0).then_some(Self(env))
    }
}

impl Drop for Held<'_, '_> {
    fn drop(&mut self) {
        let raw = self.0.raw();
        // SAFETY: `new` pushed the frame on this same thread, because an `Env` stays on its thread.
        let _ = unsafe { ((**raw).v1_2.PopLocalFrame)(raw, null_mut()) };
    }
}

/// The next free id, and a map from each class's id to the class's index.
pub(super) struct Ids {
    pub(super) next: u64,
    classes: HashMap<u64, usize>,
}

impl Environment {
    /// Collects all data needed before the fork. The class references stay valid until the returned [`Held`] is
    /// dropped. If `prepared` is given, this function does not link classes, and it does not allocate arrays in the
    /// heap to measure the object layout.
    pub(crate) fn gather<'a, 'local>(
        &self,
        env: &'a Env<'local>,
        prepared: Option<&Prepared>,
    ) -> Result<(Gathered, Held<'a, 'local>)> {
        // SAFETY: the pointer is used only within this call, which borrows the environment.
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
        // SAFETY: the out parameters are a local int and a local pointer.
        unsafe { call!(jvmti, GetLoadedClasses, &raw mut count, &raw mut list)? };
        let count = usize::try_from(count).unwrap_or(0);
        let classes: Vec<jclass> = match list.is_null() {
            true => Vec::new(),
            // SAFETY: the JVM returned a list of `count` references, which we own until it is deallocated below.
            false => unsafe { std::slice::from_raw_parts(list, count) }.to_vec(),
        };
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { jvmti.deallocate(list.cast()) };
        if prepared.is_none() {
            // SAFETY: `classes` holds the class references that the JVM has just returned.
            unsafe { jvmti.link(env, &classes) };
        }
        // Tag all classes first, because the loop below finds a superclass by its tag.
        for (index, &class) in classes.iter().enumerate() {
            // SAFETY: the JVM has just returned these local references; they stay valid until `held` is dropped.
            let address = unsafe { jvmti.assign_id(class, &mut ids.next)? };
            ids.classes.insert(address, index);
        }
        gathered.layout = match prepared {
            Some(prepared) => prepared.layout,
            None => jvmti.object_layout(env, &classes),
        };
        for &class in &classes {
            // SAFETY: the JVM has just returned this local reference; it stays valid until `held` is dropped.
            let info = unsafe { jvmti.class_info(env, class, &mut ids, &mut gathered.others)? };
            gathered.classes.push(info);
        }
        // SAFETY: the JVM has just returned these local references; they stay valid until `held` is dropped.
        unsafe { jvmti.reference_class_fields(env, &classes) };
        let redefinitions = Redefinitions::new(env);
        let counts = || -> Vec<i32> {
            let classes = classes.iter().map(|&class| {
                // SAFETY: the JVM has just returned this local reference; it stays valid until `held` is dropped.
                unsafe { Ref::<Class>::new(class) }
            });
            let counts = classes.map(|class| class.map_or(0, |c| redefinitions.count(env, c)));
            counts.collect()
        };
        let before = counts();
        let mut methods = HashMap::new();
        jvmti.threads(env, &mut methods, &mut ids, &mut gathered)?;
        gathered.reports_virtual_threads = jvmti.reports_virtual_threads();
        // SAFETY: the references are to arrays of threads and stay valid until `held` is dropped.
        unsafe { jvmti.virtual_stacks(env, &lists, &mut methods, &mut ids, &mut gathered)? };
        let known = methods.into_iter();
        let known = known.filter_map(|(method, info)| Some((method, info?)));
        gathered.methods = known.collect();
        // If a class was redefined while the stacks were read, its line tables and its frames may belong to different
        // bytecode. So remove the line numbers.
        let after = counts();
        gathered.remove_lines(|class| before.get(class) != after.get(class));
        gathered.next = ids.next;
        Ok((gathered, held))
    }
}

impl Environment {
    /// Returns the addresses of two objects in the heap: a new string and a class object. Returns `None` if the heap
    /// has no room for the string.
    pub(crate) fn heap_addresses(&self, env: &Env<'_>) -> Option<[u64; 2]> {
        let raw = env.raw();
        let address = |reference: jobject| {
            if reference.is_null() {
                // SAFETY: the environment belongs to this thread.
                unsafe { ((**raw).v1_2.ExceptionClear)(raw) };
                return None;
            }
            // SAFETY: in HotSpot a local reference points to a slot with the object's address. The address is only
            // reported, never dereferenced, because the object may have moved.
            let address = unsafe { reference.cast::<u64>().read_volatile() };
            delete(env, reference);
            Some(address)
        };
        // SAFETY: the environment belongs to this thread; the string is NUL-terminated.
        let made = unsafe { ((**raw).v1_2.NewStringUTF)(raw, c"heapdiff".as_ptr()) };
        let made = address(made)?;
        // SAFETY: the environment belongs to this thread; the string is NUL-terminated; no exception is pending.
        // `java.lang.Object` is loaded, so this fails only if the heap is full.
        let class = unsafe { ((**raw).v1_2.FindClass)(raw, c"java/lang/Object".as_ptr()) };
        Some([made, address(class)?])
    }
}

impl Jvmti {
    /// Tags an object with a new id and returns the id. An object that already has an id keeps it.
    ///
    /// # Safety
    /// The reference is valid.
    // SAFETY: JVMTI gets only the valid reference and pointers to local variables.
    pub(super) unsafe fn assign_id(&self, object: jobject, next: &mut u64) -> Result<u64> {
        // SAFETY: the caller upholds the `# Safety` contract.
        let known = unsafe { self.id_of(object) };
        if known != 0 {
            return Ok(known);
        }
        let mut size = 0;
        // SAFETY: the caller upholds the `# Safety` contract; the out parameter is a local long.
        unsafe { call!(self, GetObjectSize, object, &raw mut size)? };
        let id = *next;
        // SAFETY: the caller upholds the `# Safety` contract.
        unsafe { call!(self, SetTag, object, id.cast_signed())? };
        *next += u64::try_from(size).unwrap_or(0).next_multiple_of(8).max(8);
        Ok(id)
    }

    /// Returns the object's tag, or 0 if the object has no tag or the reference is null.
    ///
    /// # Safety
    /// The reference is valid or null.
    // SAFETY: JVMTI gets only the valid reference and a pointer to a local variable.
    unsafe fn id_of(&self, object: jobject) -> u64 {
        let mut tag = 0;
        if !object.is_null() {
            // SAFETY: the caller upholds the `# Safety` contract; the out parameter is a local long. If the call fails,
            // the tag stays 0.
            let _ = unsafe { call!(self, GetTag, object, &raw mut tag) };
        }
        tag.cast_unsigned()
    }

    /// Measures the JVM's object layout. The size of a reference follows from the sizes of two arrays. The alignment
    /// follows from these sizes and the sizes of all class objects. Returns `None` if the heap has no room for the
    /// arrays.
    fn object_layout(&self, env: &Env<'_>, classes: &[jclass]) -> Option<ObjectLayout> {
        /// Number of array elements. It is a multiple of every possible alignment.
        const ELEMENTS: c_int = 256;
        let raw = env.raw();
        let size = |object: jobject| {
            let mut size = 0;
            // SAFETY: the reference is valid; the out parameter is a local long.
            unsafe { call!(self, GetObjectSize, object, &raw mut size) }.ok()?;
            u64::try_from(size).ok()
        };
        // SAFETY: the environment belongs to this thread; the string is NUL-terminated.
        let class = unsafe { ((**raw).v1_2.FindClass)(raw, c"java/lang/Object".as_ptr()) };
        let array = |length| {
            if class.is_null() {
                return None;
            }
            // SAFETY: the environment belongs to this thread and the reference is to a class; null is a valid initial
            // element.
            let made = unsafe { ((**raw).v1_2.NewObjectArray)(raw, length, class, null_mut()) };
            if made.is_null() {
                // SAFETY: the environment belongs to this thread.
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

    /// Links those classes of the boot loader that are not linked yet.
    ///
    /// JVMTI reports no fields of an unlinked class. A program cannot create instances of such a class, but the JVM's
    /// CDS archive contains some. Linking has no effect that a program can see. `getDeclaredFields0` links the class.
    /// Only public fields are requested, because the JVM loads the types of all fields it returns, and these classes
    /// stay loaded.
    ///
    /// # Safety
    /// The references are to classes.
    // SAFETY: JNI and JVMTI get only valid class references, names of existing methods, and pointers to local
    // variables.
    unsafe fn link(&self, env: &Env<'_>, classes: &[jclass]) {
        let raw = env.raw();
        // SAFETY: the environment belongs to this thread; the strings are NUL-terminated; the method takes a boolean,
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
                        // If the heap is full, stop: linking the remaining classes would fail, too, and the JVM treats
                        // each failure like an `OutOfMemoryError` of the program.
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

    /// Creates local references to the objects in instance fields of class objects, such as their names. The heap walk
    /// does not report these fields, so without the references it would not reach those objects.
    ///
    /// # Safety
    /// The references are to classes.
    // SAFETY: only fields of `java.lang.Class` are read, from references to classes.
    unsafe fn reference_class_fields(&self, env: &Env<'_>, classes: &[jclass]) {
        let raw = env.raw();
        // SAFETY: the environment belongs to this thread; the fields are non-static reference fields of
        // `java.lang.Class`.
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
                    // The local reference stays valid until the local frame is popped.
                    let _ = ((**raw).v1_2.GetObjectField)(raw, class, field);
                }
            }
            delete(env, of);
        }
    }

    /// Reads signature, superclass, loader, interfaces and fields of a class.
    ///
    /// # Safety
    /// The reference is to a class.
    // SAFETY: JNI and JVMTI get only the valid class reference, references that they returned, and pointers to local
    // variables.
    unsafe fn class_info(
        &self,
        env: &Env<'_>,
        class: jclass,
        ids: &mut Ids,
        others: &mut Vec<u64>,
    ) -> Result<ClassInfo> {
        // SAFETY: the caller upholds the `# Safety` contract.
        let reference = unsafe { Ref::<Class>::new(class) };
        let reference = reference.ok_or(JvmtiError(error::NULL_POINTER))?;
        let mut info = ClassInfo {
            // SAFETY: the caller upholds the `# Safety` contract.
            address: unsafe { self.id_of(class) },
            signature: self.class_signature(reference)?,
            ..ClassInfo::default()
        };
        let mut status = 0;
        // SAFETY: the caller upholds the `# Safety` contract; the out parameter is a local int.
        unsafe { call!(self, GetClassStatus, class, &raw mut status)? };
        info.linked = status & PREPARED != 0 && status & (ARRAY | PRIMITIVE) == 0;
        let raw = env.raw();
        // SAFETY: the environment belongs to this thread, the reference is to a class.
        let above = unsafe { ((**raw).v1_2.GetSuperclass)(raw, class) };
        // SAFETY: the JVM has just returned this reference, or null.
        info.superclass = ids.classes.get(&unsafe { self.id_of(above) }).copied();
        delete(env, above);
        let mut loader = null_mut();
        // SAFETY: the caller upholds the `# Safety` contract; the out parameter is a local pointer.
        if unsafe { call!(self, GetClassLoader, class, &raw mut loader) }.is_ok()
            && !loader.is_null()
        {
            let before = ids.next;
            // SAFETY: the JVM has just returned this reference.
            info.loader = unsafe { self.assign_id(loader, &mut ids.next)? };
            if info.loader == before {
                others.push(before);
            }
            delete(env, loader);
        }
        if status & PREPARED == 0 {
            return Ok(info);
        }
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the caller upholds the `# Safety` contract; the out parameters are a local int and a local pointer.
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
            // SAFETY: the JVM returned a list of `count` references, which we own until it is deallocated below.
            let interfaces: &[jclass] = unsafe { std::slice::from_raw_parts(list, count) };
            for &interface in interfaces {
                // SAFETY: the JVM has just returned this reference.
                let id = unsafe { self.id_of(interface) };
                info.interfaces.extend(ids.classes.get(&id));
                delete(env, interface);
            }
            // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
            unsafe { self.deallocate(list.cast()) };
        }
        // SAFETY: the caller upholds the `# Safety` contract.
        info.fields = unsafe { self.fields(class)?.0 };
        Ok(info)
    }

    /// Reads the fields of a class, and JVMTI's ids of these fields. Array classes have no fields.
    ///
    /// # Safety
    /// The reference is to a class.
    // SAFETY: JVMTI gets only the valid class reference, field ids that it returned for this class, and pointers to
    // local variables.
    unsafe fn fields(&self, class: jclass) -> Result<(Vec<FieldInfo>, Vec<jfieldID>)> {
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the caller upholds the `# Safety` contract; the out parameters are a local int and a local pointer.
        let asked = unsafe { call!(self, GetClassFields, class, &raw mut count, &raw mut list) };
        // JVMTI reports an error for array classes.
        if asked.is_err() || list.is_null() {
            return Ok(Default::default());
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the JVM returned a list of `count` fields, which we own until it is deallocated below.
        let fields: Vec<jfieldID> = unsafe { std::slice::from_raw_parts(list, count) }.to_vec();
        // SAFETY: the JVM allocated the list for us; nothing refers to it any more.
        unsafe { self.deallocate(list.cast()) };
        let mut infos = Vec::with_capacity(count);
        for &field in &fields {
            let (mut name, mut signature, mut modifiers) = (null_mut(), null_mut(), 0);
            // SAFETY: the field belongs to this class; the generic signature is not requested.
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

    /// Records all platform threads with their stacks. All stacks are read at the same moment.
    fn threads(
        &self,
        env: &Env<'_>,
        methods: &mut Methods,
        ids: &mut Ids,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let mut own = null_mut();
        // SAFETY: the out parameter is a local pointer.
        unsafe { call!(self, GetCurrentThread, &raw mut own)? };
        // SAFETY: the JVM has just returned this reference.
        let own_id = unsafe { self.assign_id(own, &mut ids.next)? };
        delete(env, own);
        let (mut count, mut list) = (0, null_mut());
        // SAFETY: the out parameters are a local pointer and a local int.
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
        // SAFETY: the JVM returned a list of `count` stacks, which we own until it is deallocated below.
        let stacks: &[jvmtiStackInfo] = unsafe { std::slice::from_raw_parts(list, count) };
        for stack in stacks {
            // SAFETY: the JVM has just returned this reference.
            let address = unsafe { self.assign_id(stack.thread, &mut ids.next)? };
            let count = usize::try_from(stack.frame_count).unwrap_or(0);
            let frames: &[jvmtiFrameInfo] = match stack.frame_buffer.is_null() {
                true => &[],
                // SAFETY: the JVM returned `count` frames together with the list.
                false => unsafe { std::slice::from_raw_parts(stack.frame_buffer, count) },
            };
            let frames = frames
                .iter()
                .filter_map(|frame| {
                    // SAFETY: local references to all classes are held, so their methods stay valid.
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

    /// Returns the method of a frame, or `None` if the method's class was loaded after the classes were gathered.
    ///
    /// # Safety
    /// Local references to all classes in `ids` are held.
    // SAFETY: methods of the held classes are valid, and those of other classes are rejected.
    pub(super) unsafe fn known_method<'m>(
        &self,
        env: &Env<'_>,
        frame: &jvmtiFrameInfo,
        methods: &'m mut Methods,
        ids: &Ids,
    ) -> Option<&'m MethodInfo> {
        let method = methods
            .entry(frame.method.addr())
            // SAFETY: the caller guarantees that methods of the classes in `ids` are valid. A class that was loaded
            // later has no id, so `method_of` rejects its methods. Their method ids may be invalid, which is sound,
            // because the JVM checks method ids.
            .or_insert_with(|| unsafe { self.method_of(env, frame, ids) });
        method.as_ref()
    }

    /// Reads name, signature, source file and lines of a frame's method.
    ///
    /// # Safety
    /// The method's class is loaded.
    // SAFETY: the method is valid, because its class is loaded. JVMTI gets only this method, its class, and pointers to
    // local variables.
    unsafe fn method_of(
        &self,
        env: &Env<'_>,
        frame: &jvmtiFrameInfo,
        ids: &Ids,
    ) -> Option<MethodInfo> {
        let method: as_int::MethodId = frame.method.cast();
        let mut class = null_mut();
        // SAFETY: the caller guarantees a valid method; the out parameter is a local pointer.
        unsafe { call!(self, GetMethodDeclaringClass, method, &raw mut class).ok()? };
        // SAFETY: the JVM has just returned this reference.
        let known = ids.classes.get(&unsafe { self.id_of(class) }).copied();
        let mut file = null_mut();
        // SAFETY: the class is valid; the out parameter is a local pointer. It stays null if the class has no source
        // file.
        let _ = unsafe { call!(self, GetSourceFileName, class, &raw mut file) };
        // SAFETY: the JVM has just returned the string, or it is null.
        let file = unsafe { self.text(file) };
        delete(env, class);
        let known = known?;
        let (mut name, mut signature) = (null_mut(), null_mut());
        // SAFETY: the method is valid; its generic signature is not requested.
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
        // SAFETY: the method is valid; the out parameter is a local byte. If the call fails, the byte stays 0.
        let _ = unsafe { call!(self, IsMethodNative, method, &raw mut is_native) };
        // SAFETY: the JVM has just returned both strings.
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
            // SAFETY: the method is valid, because its class is loaded.
            lines: unsafe { self.lines(method) },
        })
    }
}

/// Methods by JVMTI's id. The value is `None` for a method whose class was loaded after the classes were gathered.
pub(super) type Methods = HashMap<usize, Option<MethodInfo>>;

/// Deletes a local reference.
pub(super) fn delete(env: &Env<'_>, reference: jobject) {
    // SAFETY: the JVM has just returned this local reference and nothing else owns it, or it is null.
    drop(unsafe { Local::<Any>::new(env, reference) });
}
