//! Tests that each class definition is recorded with the stack that defined the class.

use heapdiff_sites::Counter;

use crate::dumped::{Dumped, Sample};
use crate::{jdks, launch};

#[test]
fn definitions_have_stacks() {
    for jdk in jdks() {
        let mut target = launch(&jdk, "Loaders", "interval=512k").start().unwrap();
        target.wait_ready(1).unwrap();
        target.advance(2).unwrap();
        let dumped = Dumped::of(&target);
        dumped.assert_complete();
        let below = |method: &str| -> Vec<&Sample> {
            let below = |s: &&Sample| dumped.through(s.site, &format!("Loaders.{method}"));
            dumped.classes.iter().filter(below).collect()
        };
        let plugins = |method: &str| {
            let plugin = |s: &&Sample| s.kind == "Loaders$Plugin";
            below(method).into_iter().filter(plugin).count()
        };
        assert_eq!(plugins("deploy"), 30);
        assert_eq!(plugins("hide"), 20);
        // These classes are unloaded together with their class loaders. One class may still be loaded, because a frame
        // may still hold it.
        assert!(plugins("deployAndForget") <= 1);
        assert!(dumped.counter(Counter::Collected) >= 39);
        let unloaded = |s: &&Sample| {
            s.kind == "Loaders$Plugin" && dumped.through(s.site, "Loaders.deployAndForget")
        };
        assert!(dumped.recent.iter().filter(unloaded).count() >= 39);
        // The sample of a class definition refers to the class object itself.
        for sample in below("deploy") {
            assert_eq!(sample.referent.as_deref(), Some("Loaders$Plugin"));
            assert_eq!((sample.size, sample.mark), (0, 2));
        }
        let frames = dumped.frames(below("deploy")[0].site);
        assert!(
            frames[0].starts_with("java.lang.ClassLoader.defineClass"),
            "{frames:?}"
        );
        assert!(frames.iter().any(|f| f == "Loaders$PluginLoader.define"));
        // The JDK defines lambda classes and proxy classes on behalf of the program.
        assert!(below("lambda").iter().any(|s| s.kind == "Loaders$$Lambda"));
        assert!(below("proxy").iter().any(|s| s.kind.contains("$Proxy")));
        assert!(target.finish().unwrap());
    }
}
