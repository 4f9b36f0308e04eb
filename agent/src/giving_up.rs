//! The flags of an agent that stops after internal errors.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Acquire, Release},
};

/// Records that the agent has given up after errors. If the flag `asked` is set, the agent has given up. If the flag
/// `events_on` is also set, the JVM still sends events that must be disabled.
///
/// An error can occur in any callback. JVMTI forbids disabling events in GC callbacks. So the callback whose error
/// makes the agent give up only sets both flags, and the agent's thread disables the events.
pub(crate) struct GivingUp {
    asked: AtomicBool,
    events_on: AtomicBool,
}

impl GivingUp {
    pub(crate) const fn new() -> Self {
        Self {
            asked: AtomicBool::new(false),
            events_on: AtomicBool::new(false),
        }
    }

    /// Records that the agent gives up. Returns false if the agent had given up before. Only sets flags, so any
    /// callback may call this.
    pub(crate) fn give_up(&self) -> bool {
        if self.asked.swap(true, AcqRel) {
            return false;
        }
        self.events_on.store(true, Release);
        true
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.asked.load(Acquire)
    }

    /// True if the caller must disable the events. After the agent has given up, this function returns true only once,
    /// to its first caller.
    pub(crate) fn take_events(&self) -> bool {
        self.events_on.swap(false, AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::GivingUp;

    /// The agent gives up at most once. After that, exactly one thread must disable the events. Before that, no thread
    /// must disable them.
    #[test]
    fn events_are_disabled_once_and_only_on_request() {
        let giving_up = GivingUp::new();
        assert!(!giving_up.is_requested() && !giving_up.take_events());
        assert!(giving_up.give_up());
        assert!(!giving_up.give_up());
        assert!(giving_up.is_requested() && giving_up.take_events());
        assert!(!giving_up.take_events() && !giving_up.give_up());
        assert!(giving_up.is_requested() && !giving_up.take_events());
    }
}
