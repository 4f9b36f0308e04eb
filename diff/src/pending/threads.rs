//! Threads with equal stacks.

use std::collections::BTreeMap;

use hprof::ObjectIndex;
use hprof::answers::Thread;

use super::{Groups, PendingKind};

pub(super) fn add(threads: &[Thread], groups: &mut Groups) {
    let mut stacks: BTreeMap<(PendingKind, Vec<String>), Vec<ObjectIndex>> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| !thread.frames.is_empty()) {
        let Some(object) = thread.object else {
            continue;
        };
        let kind = if thread.is_virtual {
            PendingKind::VirtualThreads
        } else {
            PendingKind::Threads
        };
        let frames = thread.frames.iter().map(|f| f.frame.to_string()).collect();
        stacks.entry((kind, frames)).or_default().push(object);
    }
    for ((kind, frames), members) in stacks {
        if members.len() > 1 {
            for member in members {
                groups.add(kind, frames.clone(), member);
            }
        }
    }
}
