//! Runs many more threads than there are processors, so that the kernel may deschedule any thread at the worst moment.

use std::time::Duration;

use crate::dumped::Dumped;
use crate::{jdks, launch};

/// The kernel may deschedule a thread that creates a chunk of a table for other threads. No sample is lost meanwhile.
/// The agent samples every allocation, so all objects that the program keeps have a sample.
#[test]
fn no_sample_is_lost_in_a_crowd() {
    let (threads, objects) = (600, 600);
    for jdk in jdks() {
        for young in ["-Xmn16m", "-Xmn200m"] {
            let mut target = launch(&jdk, "Crowd", "interval=0,max_samples=1000000,depth=4")
                .flags(["-Xmx700m", young, "-Xss256k"])
                .arg(threads.to_string())
                .arg(objects.to_string())
                .timeout(Duration::from_secs(120))
                .start()
                .unwrap();
            target.wait_ready(1).unwrap();
            let dumped = Dumped::of(&target);
            dumped.assert_complete();
            let of_all = dumped.of_kind("Crowd.keep", "Crowd$Small").len();
            assert_eq!(of_all, threads * objects, "JDK {} {young}", jdk.version());
        }
    }
}
