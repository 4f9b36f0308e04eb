//! Reads class files. They contain the flags of fields, such as `final`, which a dump lacks.
//!
//! A class path names folders, jars, `.jmod` files, a JDK's `lib/modules`, or a JDK. Only requested classes are read.
//! If several of these folders and files contain a class, the first one is used.
//!
//! The files are untrusted. A class name cannot lead out of its folder, sizes in the files are checked, and a malformed
//! file causes an error that names the file.

mod coroutine;
mod image;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use hprof::answers::DeclaredField;
use hprof::records::Kind;
use noak::AccessFlags;
use noak::reader::Class;
use zip::ZipArchive;

use crate::failure::{Failure, Result, system_message};
pub(crate) use coroutine::SuspendFunction;
use image::Image;

/// Maximum size of a class file in bytes. Compilers write class files of at most a few megabytes.
const LARGEST_CLASS: u64 = 16 << 20;
/// Maximum size in bytes of a jar within a jar, which is unpacked into memory.
const LARGEST_JAR: u64 = 512 << 20;
/// Folders inside a jar or a module file that contain class files. The empty string means the top folder, as in a plain
/// jar.
const FOLDERS: [&str; 4] = ["", "BOOT-INF/classes/", "WEB-INF/classes/", "classes/"];
/// Folders inside the jar of an application that contain other jars.
const LIBRARIES: [&str; 2] = ["BOOT-INF/lib/", "WEB-INF/lib/"];

/// One value of `--classpath`.
#[derive(Clone, Debug)]
pub(crate) struct ClassPath(Vec<PathBuf>);

/// Parses one value of `--classpath`.
pub(crate) fn class_path(text: &str) -> std::result::Result<ClassPath, String> {
    let paths = std::env::split_paths(text).filter(|p| !p.as_os_str().is_empty());
    match paths.collect::<Vec<PathBuf>>() {
        paths if paths.is_empty() => Err("the class path is empty".to_owned()),
        paths => Ok(ClassPath(paths)),
    }
}

/// An open class path.
pub(crate) struct Classpath {
    places: Vec<ClassSource>,
}

enum ClassSource {
    Folder(PathBuf),
    Archive(PathBuf, Archive),
    Image(PathBuf, Image),
}

/// A jar or a `.jmod` file, with the index of the entry of each class.
struct Archive {
    zip: Box<dyn Entries>,
    classes: HashMap<String, usize>,
}

/// The entries of an archive. This trait hides the type of the reader.
trait Entries {
    fn name(&self, at: usize) -> String;
    /// Returns the content of an entry. Returns an error if the content is longer than `most` bytes.
    fn content(&mut self, at: usize, most: u64) -> io::Result<Vec<u8>>;
}

impl<R: Read + Seek> Entries for ZipArchive<R> {
    fn name(&self, at: usize) -> String {
        let name = self.name_for_index(at).and_then(|name| name.ok());
        name.unwrap_or_default().into_owned()
    }

    fn content(&mut self, at: usize, most: u64) -> io::Result<Vec<u8>> {
        read_limited(self.by_index(at)?, most)
    }
}

/// Reads to the end of the input. Returns an error if there are more than `most` bytes.
fn read_limited(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("the file is longer than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}

impl Archive {
    fn new<R: Read + Seek + 'static>(file: R) -> io::Result<(Self, Vec<usize>)> {
        let zip = ZipArchive::new(file)?;
        let (mut classes, mut jars) = (HashMap::new(), Vec::new());
        for at in 0..zip.len() {
            let Some(Ok(name)) = zip.name_for_index(at) else {
                continue;
            };
            if let Some(class) = name.strip_suffix(".class") {
                // Several folders can be a prefix of this path, because `""` is one of them. The class name begins
                // after the longest prefix.
                let folders = FOLDERS.iter().filter_map(|f| class.strip_prefix(f));
                if let Some(class) = folders.min_by_key(|c| c.len()) {
                    classes.entry(class.replace('/', ".")).or_insert(at);
                }
            } else if LIBRARIES.iter().any(|l| name.starts_with(l)) && name.ends_with(".jar") {
                jars.push(at);
            }
        }
        let zip = Box::new(zip);
        Ok((Self { zip, classes }, jars))
    }
}

fn failure(path: &Path, what: &str) -> Failure {
    Failure::bad_input(format!("--classpath: {}: {what}", path.display()))
}

impl Classpath {
    /// Opens files and folders. If several of them contain the same class, the first one is used. `folder/*` means all
    /// archives of a folder, as in Java's own class path.
    pub(crate) fn open(values: &[ClassPath]) -> Result<Self> {
        let mut places = Vec::new();
        for path in values.iter().flat_map(|value| &value.0) {
            if path.file_name().is_some_and(|name| name == "*") {
                archives_of(path.parent().unwrap_or(path), &mut places)?
            } else {
                open(path, &mut places)?
            }
        }
        Ok(Self { places })
    }

    /// Returns the fields that a class declares; `None` if the class is not found.
    pub(crate) fn fields(&mut self, class: &str) -> Result<Option<Vec<DeclaredField>>> {
        self.read(class, declared)
    }

    /// Returns the suspension points of a Kotlin function. `class` is the class of its continuation. Returns `None` if
    /// the class is not found or is not the class of a continuation.
    pub(crate) fn suspend_function(&mut self, class: &str) -> Result<Option<SuspendFunction>> {
        let read = |bytes: &[u8]| SuspendFunction::read(bytes).map_err(|e| not_a_class(&e));
        Ok(self.read(class, read)?.flatten())
    }

    /// Reads the file of a class.
    fn read<T>(
        &mut self,
        class: &str,
        decode: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>> {
        for place in &mut self.places {
            let (path, found) = match place {
                ClassSource::Folder(path) => (&*path, in_folder(path, class)),
                ClassSource::Archive(path, archive) => {
                    let entry = archive.classes.get(class);
                    let found = entry.map(|&at| archive.zip.content(at, LARGEST_CLASS));
                    (&*path, found.transpose())
                }
                ClassSource::Image(path, image) => (&*path, image.class(class, LARGEST_CLASS)),
            };
            let wrong = |what: &str| failure(path, &format!("class {class}: {what}"));
            if let Some(bytes) = found.map_err(|e| wrong(&system_message(&e)))? {
                return decode(&bytes).map(Some).map_err(|what| wrong(&what));
            }
        }
        Ok(None)
    }
}

fn open(path: &Path, places: &mut Vec<ClassSource>) -> Result<()> {
    let wrong = |e: &io::Error| failure(path, &system_message(e));
    let kind = fs::metadata(path).map_err(|e| wrong(&e))?;
    if kind.is_dir() {
        let modules = path.join("lib/modules");
        if modules.is_file() {
            return open(&modules, places);
        }
        places.push(ClassSource::Folder(path.to_owned()));
        return Ok(());
    }
    let mut file = File::open(path).map_err(|e| wrong(&e))?;
    if let Some(image) = Image::open(&mut file).map_err(|e| wrong(&e))? {
        places.push(ClassSource::Image(path.to_owned(), image));
        return Ok(());
    }
    let (mut archive, jars) = Archive::new(file).map_err(|e| {
        let what = system_message(&e);
        failure(path, &format!("not a jar or a folder of classes: {what}"))
    })?;
    let mut inner = Vec::new();
    for at in jars {
        let path = path.join(archive.zip.name(at));
        let wrong = |e: &io::Error| failure(&path, &system_message(e));
        let bytes = archive
            .zip
            .content(at, LARGEST_JAR)
            .map_err(|e| wrong(&e))?;
        let (archive, _) = Archive::new(Cursor::new(bytes)).map_err(|e| wrong(&e))?;
        inner.push(ClassSource::Archive(path, archive));
    }
    places.push(ClassSource::Archive(path.to_owned(), archive));
    places.append(&mut inner);
    Ok(())
}

/// Adds all jars and `.jmod` files of a folder, in the order of their names.
fn archives_of(folder: &Path, places: &mut Vec<ClassSource>) -> Result<()> {
    let list = fs::read_dir(folder).map_err(|e| failure(folder, &system_message(&e)))?;
    let mut paths: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "jar" || e == "jmod"));
    paths.sort();
    paths.iter().try_for_each(|path| open(path, places))
}

/// Reads the class file of a class in a folder. Returns `None` if the folder does not have the file.
fn in_folder(folder: &Path, class: &str) -> io::Result<Option<Vec<u8>>> {
    // Class names come from the dump, which is untrusted. A name must not lead out of the folder.
    let plain = |part: &str| !part.is_empty() && !part.contains(['/', '\\', ':', '\0']);
    if !class.split('.').all(plain) {
        return Ok(None);
    }
    let mut path = folder.to_owned();
    path.extend(class.split('.'));
    let mut name = path.into_os_string();
    name.push(".class");
    let path = PathBuf::from(name);
    if !path.is_file() {
        return Ok(None);
    }
    read_limited(File::open(path)?, LARGEST_CLASS).map(Some)
}

/// Returns the fields that a class file declares.
fn declared(bytes: &[u8]) -> Result<Vec<DeclaredField>, String> {
    let read = || -> Result<Vec<DeclaredField>, noak::error::DecodeError> {
        let class = Class::new(bytes)?;
        let mut fields = Vec::new();
        for field in class.fields() {
            let field = field?;
            let flags = field.access_flags();
            let name = class.pool().retrieve(field.name())?;
            let descriptor = class.pool().retrieve(field.descriptor())?;
            fields.push(DeclaredField {
                name: name.display().to_string(),
                kind: kind(descriptor.as_bytes()),
                is_static: flags.contains(AccessFlags::STATIC),
                is_final: flags.contains(AccessFlags::FINAL),
                is_transient: flags.contains(AccessFlags::TRANSIENT),
            });
        }
        Ok(fields)
    };
    read().map_err(|e| not_a_class(&e))
}

fn not_a_class(error: &noak::error::DecodeError) -> String {
    format!("not a class file: {error}")
}

/// Returns the type of a field with this descriptor.
fn kind(descriptor: &[u8]) -> Kind {
    match descriptor.first() {
        Some(b'Z') => Kind::Boolean,
        Some(b'C') => Kind::Char,
        Some(b'F') => Kind::Float,
        Some(b'D') => Kind::Double,
        Some(b'B') => Kind::Byte,
        Some(b'S') => Kind::Short,
        Some(b'I') => Kind::Int,
        Some(b'J') => Kind::Long,
        _ => Kind::Object,
    }
}

#[cfg(test)]
mod tests;
