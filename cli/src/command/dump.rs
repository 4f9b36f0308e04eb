//! `heapdiff dump`: takes a dump of a running JVM.

use clap::Args;

use crate::capture::{self, DumpRequest, JvmArgs};
use crate::failure::{Exit, Result};
use crate::progress::Wanted;

const HELP: &str = "\
Examples:
  heapdiff dump 4711 -o app.hprof.gz  # a compressed dump of the live objects
  heapdiff dump 4711 --fork           # a dump that pauses the JVM only for milliseconds

The JVM is paused while it writes, except with --fork. If the JVM cannot write to the folder of the
output file, it writes to its own /tmp (that of its container), and heapdiff moves the dump. The
file gets its name only when it is complete. With `-o -` the dump passes through $TMPDIR or the
JVM's /tmp, and no file remains.

--fork tries up to ten times, and each try pauses the JVM for some milliseconds: a child cannot
continue if a JIT compiler thread held a lock at the fork.

If you run dump as root, it also works for JVMs of other users and in containers.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Dump {
    #[command(flatten)]
    jvm: JvmArgs,
    #[command(flatten)]
    request: DumpRequest,
    #[command(flatten)]
    progress: Wanted,
}

impl Dump {
    pub(crate) fn run(&self) -> Result<Exit> {
        capture::dump(&self.jvm, &self.request, self.progress)
    }
}
