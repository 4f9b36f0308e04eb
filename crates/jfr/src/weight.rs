//! Computes how many objects and bytes each sample represents.

use heapdiff_sites::{Sampling, Strategy, Weight};

use crate::recording::{Event, Recording, Sample};

impl Recording {
    /// Returns the number of objects and bytes that a sample represents.
    ///
    /// - Samples at a mean interval in bytes (async-profiler): computed from the object's size.
    /// - Samples of the JVM: the weight in the event ([`Weight::poisson`]).
    /// - Events that the JVM records for every allocation, and events without a weight: one object, with its own size.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn weight(&self, sample: &Sample) -> Weight {
        let (size, weight) = (sample.size as f64, sample.weight as f64);
        let own = match (sample.event, self.interval) {
            (Event::Live | Event::InBuffer | Event::Outside, Some(interval)) => Sampling {
                strategy: Strategy::Bytes,
                interval,
                rate: 0,
            }
            .weight(sample.size),
            _ => None,
        };
        own.unwrap_or_else(|| match sample.event {
            Event::Old | Event::Live => Weight::poisson(1.0, size),
            // This kind of event has no field for the object's size, so the event counts as one object.
            Event::Allocation => Weight::poisson(1.0, weight),
            Event::InBuffer => Weight::poisson((weight / size.max(8.0)).max(1.0), weight),
            // The JVM records every allocation outside of a TLAB, so the event represents only its own object.
            Event::Outside => Weight::exact(1.0, size),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{NameId, StackId};

    fn sample(event: Event, size: u64, weight: u64) -> Sample {
        Sample {
            event,
            time_ns: 0,
            allocated_ns: 0,
            class: NameId(0),
            stack: StackId(0),
            thread: NameId(0),
            size,
            weight,
            elements: None,
            chain: crate::names::ChainId(0),
        }
    }

    #[test]
    fn weights_by_event() {
        let mut recording = Recording::default();
        for (event, objects, bytes, variance) in [
            (Event::Old, 1.0, 32.0, 1024.0),
            (Event::Live, 1.0, 32.0, 1024.0),
            (Event::Allocation, 1.0, 4096.0, 4096.0 * 4096.0),
            (Event::InBuffer, 128.0, 4096.0, 4096.0 * 4096.0),
            (Event::Outside, 1.0, 32.0, 0.0),
        ] {
            let weight = recording.weight(&sample(event, 32, 4096));
            let found = (weight.objects, weight.bytes, weight.bytes_variance);
            assert_eq!(found, (objects, bytes, variance), "{event:?}");
        }
        // The event does not contain the size of this object.
        assert_eq!(
            recording.weight(&sample(Event::InBuffer, 0, 4)).objects,
            1.0
        );
        recording.interval = Some(524_288);
        let sampling = Sampling {
            interval: 524_288,
            ..Sampling::default()
        };
        for event in [Event::Live, Event::InBuffer, Event::Outside] {
            let weight = recording.weight(&sample(event, 32, 4096));
            assert_eq!(Some(weight), sampling.weight(32), "{event:?}");
        }
        let old = recording.weight(&sample(Event::Old, 32, 0));
        assert_eq!((old.objects, old.bytes), (1.0, 32.0));
    }
}
