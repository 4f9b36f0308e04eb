//! The pages of dumps: the reports of other commands, made when the browser requests them.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use heapdiff_report::html::{DUMP_STYLE, DumpPage, object_address};
use heapdiff_report::{Report, printable};
use heapdiff_ui::Pages;
use hprof::answers::Selector;
use hprof::bytes;

use super::super::diff::Diff;
use super::super::growth::Question;
use super::super::heap::Heap;
use super::super::histo::Histo;
use super::super::opened::open;
use super::super::owners::Owners;
use super::super::paths::Paths;
use super::super::show::Show;
use super::super::threads::Threads;
use super::super::top::Top;
use super::super::waste::Waste;
use crate::failure::{Failure, Result};
use crate::index;
use crate::job::{OpenDumps, Setup, Task};

/// Maximum number of rows of a list.
const ROWS: usize = 100;
/// Maximum number of fields, elements and referrers of an object, and of the objects that it dominates.
const PARTS: usize = 50;
/// Pages that do not depend on a selected object. They are made in advance, because some of them read all objects.
const GENERAL: [&str; 6] = ["/", "/classes", "/largest", "/owners", "/threads", "/waste"];

/// One or more dumps, oldest first.
#[derive(Debug)]
pub(super) struct DumpPages {
    dumps: Vec<PathBuf>,
    setup: Setup,
    /// The pages made so far, except pages about single objects. The key is the path of the URL and the number of the
    /// dump.
    made: Mutex<HashMap<(String, usize), MadePage>>,
}

/// A page that is made on the first request.
type MadePage = Arc<OnceLock<Vec<u8>>>;

/// The parameters of a page.
struct Asked {
    /// The number of the dump, from 0.
    dump: usize,
    /// The selector of the objects that the page shows; empty for a general page.
    of: String,
    /// The index of the first shown element.
    from: u64,
}

impl Asked {
    fn parse(query: &str, dumps: usize) -> Self {
        let mut asked = Self {
            dump: dumps.saturating_sub(1),
            of: String::new(),
            from: 0,
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "of" => asked.of = value.trim().to_owned(),
                "from" => asked.from = value.parse().unwrap_or(0),
                "dump" => {
                    let number = value.parse::<usize>().ok();
                    let number = number.and_then(|number| number.checked_sub(1));
                    asked.dump = number.filter(|&at| at < dumps).unwrap_or(asked.dump);
                }
                _ => {}
            }
        }
        asked
    }
}

impl DumpPages {
    /// Opens the dumps, which stay open as long as the server runs.
    pub(super) fn open(dumps: &[PathBuf], setup: Setup) -> Result<Arc<Self>> {
        // Pages about single objects are fast only with an index. So write the indexes first.
        for dump in dumps {
            open(&setup, dump)?;
            index::write_pending();
        }
        let mut opened = Vec::new();
        for dump in dumps {
            let (snapshot, _) = open(&setup, dump)?;
            opened.push((dump.clone(), Arc::clone(&snapshot.snapshot)));
        }
        let pages = Arc::new(Self {
            dumps: dumps.to_vec(),
            setup: Setup {
                open: OpenDumps(Arc::new(opened)),
                ..setup
            },
            made: Mutex::default(),
        });
        let ahead = Arc::clone(&pages);
        let thread = std::thread::Builder::new().name("ui pages".to_owned());
        // If the thread cannot be started, each page in `GENERAL` is made when the browser first requests it.
        let _ = thread.spawn(move || {
            for dump in (1..=ahead.dumps.len()).rev() {
                for path in GENERAL {
                    let _ = ahead.page(path, &format!("dump={dump}"));
                }
            }
            index::write_pending();
        });
        Ok(pages)
    }

    /// Runs a task. The lists in its report have at most `rows` rows.
    fn run(&self, task: &impl Task, rows: usize) -> Result<Report> {
        let setup = Setup {
            top: Some(rows),
            ..self.setup.clone()
        };
        let mut reports = task.run(&setup)?;
        if reports.is_empty() {
            return Err(Failure::usage("the command produced no report"));
        }
        Ok(reports.swap_remove(0))
    }

    /// Returns the reports of a page with their headings. `None` if there is no such page.
    fn reports(&self, path: &str, asked: &Asked) -> Option<Vec<(String, Result<Report>)>> {
        let dump = || self.dumps[asked.dump].clone();
        let selector = || {
            asked
                .of
                .parse::<Selector>()
                .map_err(|e| Failure::usage(e.to_string()))
        };
        let part = |heading: &str, report| (heading.to_owned(), report);
        Some(match path {
            "/" => vec![part("Report", self.report())],
            "/classes" => {
                let task = Histo {
                    dump: dump(),
                    retained: true,
                };
                vec![part("Classes", self.run(&task, ROWS))]
            }
            "/largest" => {
                let task = Top::new(dump(), None);
                vec![part("Objects that retain the most", self.run(&task, ROWS))]
            }
            "/owners" => vec![part("Owners", self.run(&Owners::new(dump()), ROWS))],
            "/threads" => {
                let task = Threads {
                    dump: dump(),
                    classpath: Vec::new(),
                };
                vec![part("Threads", self.run(&task, ROWS))]
            }
            "/waste" => vec![part("Waste", self.run(&Waste::new(dump()), ROWS))],
            "/object" => {
                let show = selector()
                    .and_then(|selector| self.run(&Show::new(dump(), selector, asked.from), PARTS));
                // It takes long to compute which objects several selected objects dominate together. So the page shows
                // dominated objects only if a single object is selected.
                let is_one = |show: &Report| match show {
                    Report::Show(show) => show.selected.objects == 1,
                    _ => false,
                };
                if !show.as_ref().is_ok_and(is_one) {
                    return Some(vec![part("Objects", show)]);
                }
                let dominated = selector()
                    .and_then(|selector| self.run(&Top::new(dump(), Some(selector)), PARTS));
                vec![
                    part("Object", show),
                    part("Objects that it dominates", dominated),
                ]
            }
            "/paths" => {
                let paths = selector().and_then(|selector| {
                    let task = Paths {
                        dump: dump(),
                        selector,
                        exclude: Vec::new(),
                        alternatives: None,
                    };
                    self.run(&task, ROWS)
                });
                vec![part("Paths from GC roots", paths)]
            }
            _ => return None,
        })
    }

    /// Returns the comparison of several dumps, or the report of one dump.
    fn report(&self) -> Result<Report> {
        let question = Question::default();
        match &*self.dumps {
            [dump] => {
                let dump = dump.clone();
                self.run(&Heap { dump, question }, ROWS)
            }
            dumps => {
                let task = Diff {
                    dumps: dumps.to_vec(),
                    trace: None,
                    owners: None,
                    question,
                };
                self.run(&task, ROWS)
            }
        }
    }

    /// Makes a page. Also returns true if all reports of the page succeeded. Returns `None` if there is no such page.
    fn make(&self, path: &str, asked: &Asked) -> Option<(Vec<u8>, bool)> {
        // Discard the record of a file that changed while an earlier page was made.
        let _ = bytes::changed_file();
        let reports = self.reports(path, asked)?;
        let dumps = self.dumps.iter().enumerate().map(|(at, dump)| {
            let is_current = at == asked.dump && path != "/";
            (dump.display().to_string(), is_current)
        });
        let dumps: Vec<(String, bool)> = dumps.collect();
        let mut messages = Vec::new();
        let mut sections = Vec::new();
        for (heading, report) in &reports {
            match report {
                Ok(report) => {
                    let conditions = report.conditions();
                    let warnings = conditions.iter().flat_map(|condition| condition.warnings);
                    messages.extend(warnings.cloned());
                    sections.push((heading.clone(), report));
                }
                Err(failure) => {
                    messages.push(failure.message.clone());
                    messages.extend(failure.hint.clone());
                }
            }
        }
        if let Some(error) = bytes::changed_file() {
            messages.push(Failure::changed(&error).message);
        }
        let related = match &*asked.of {
            "" => Vec::new(),
            of => {
                let object = object_address(of);
                let page = |name: &str| object.replacen("object", name, 1);
                let mut related = vec![
                    ("Fields and referrers".to_owned(), object.clone()),
                    ("Paths from GC roots".to_owned(), page("paths")),
                ];
                if path == "/object" {
                    let next = asked.from.saturating_add(PARTS as u64);
                    related.push(("More elements".to_owned(), format!("{object}&from={next}")));
                }
                related
            }
        };
        let page = DumpPage {
            title: match (&*asked.of, &*dumps) {
                ("", [(dump, _)]) => dump.clone(),
                ("", dumps) => match path {
                    "/" => format!("{} dumps", dumps.len()),
                    _ => dumps[asked.dump].0.clone(),
                },
                (of, _) => printable(of).into_owned(),
            },
            dumps: &dumps,
            search: &asked.of,
            related,
            messages,
            sections,
        };
        let is_whole = reports.iter().all(|(_, report)| report.is_ok());
        Some((page.html().ok()?, is_whole))
    }
}

impl Pages for DumpPages {
    fn page(&self, path: &str, query: &str) -> Option<Vec<u8>> {
        let asked = Asked::parse(query, self.dumps.len());
        if !GENERAL.contains(&path) {
            return self.make(path, &asked).map(|(page, _)| page);
        }
        let asked = Asked {
            // The start page is about all dumps.
            dump: if path == "/" { 0 } else { asked.dump },
            of: String::new(),
            from: 0,
        };
        let key = (path.to_owned(), asked.dump);
        let made = {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(made.entry(key.clone()).or_default())
        };
        let is_whole = Cell::new(true);
        let page = made.get_or_init(|| {
            let (page, whole) = self.make(path, &asked).unwrap_or_default();
            is_whole.set(whole);
            page
        });
        if !is_whole.get() {
            // A page with a failed report is not stored. The next request makes the page again.
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.remove(&key);
        }
        Some(page.clone())
    }

    fn style(&self) -> &'static str {
        DUMP_STYLE
    }
}
