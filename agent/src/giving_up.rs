//! The flags of an agent that gives up after faults of its own.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Acquire, Release},
};

/// Two flags: the agent gives up, and the JVM still sends events that the agent has to turn off.
///
/// A fault can occur in any callback. In callbacks of the GC, JVMTI forbids to turn events off. So
/// the callback with the last fault sets the flags, and the thread of the agent turns the events off.
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

    /// Gives up; `false` if the agent had done so before. Sets flags alone, so that it may be called anywhere.
    pub(crate) fn ask(&self) -> bool {
        if self.asked.swap(true, AcqRel) {
            return false;
        }
        self.events_on.store(true, Release);
        true
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Acquire)
    }

    /// Whether the caller is to turn the events off. Only the first caller is.
    pub(crate) fn take_events(&self) -> bool {
        self.events_on.swap(false, AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::GivingUp;

    /// Giving up happens once, and one thread turns the events off, once and not before.
    #[test]
    fn events_are_turned_off_once_and_only_when_asked() {
        let giving_up = GivingUp::new();
        assert!(!giving_up.is_asked() && !giving_up.take_events());
        assert!(giving_up.ask());
        assert!(!giving_up.ask());
        assert!(giving_up.is_asked() && giving_up.take_events());
        assert!(!giving_up.take_events() && !giving_up.ask());
        assert!(giving_up.is_asked() && !giving_up.take_events());
    }
}
