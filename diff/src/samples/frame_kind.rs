//! Distinguishes frames of the application from frames of the JDK and of frameworks. Reports fold the frames of the JDK
//! and of frameworks.

use std::fmt;
use std::sync::OnceLock;

use heapdiff_sites::packages::{self, is_jdk};
use heapdiff_units::grouped;

static MORE: OnceLock<Vec<String>> = OnceLock::new();

/// Adds prefixes of class names, such as `com.acme.rpc.`. Until the process ends, the classes with these prefixes count
/// as frameworks. Only the first call has an effect.
pub fn add_frameworks(prefixes: Vec<String>) {
    let _ = MORE.set(prefixes);
}

/// Returns the added prefixes of frameworks.
pub fn added_frameworks() -> impl Iterator<Item = &'static str> {
    MORE.get().into_iter().flatten().map(String::as_str)
}

/// The kind of code to which a frame belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameKind {
    /// The application.
    Application,
    /// A framework that the user added.
    Added,
    /// A framework, a server, the runtime of Kotlin, Scala, Clojure or Groovy, or a generated proxy.
    Framework,
    /// The JDK, or code that the JVM generates.
    Jdk,
}

/// Returns the kind of a frame. `frame` is written as in a report.
pub(crate) fn frame_kind(frame: &str) -> FrameKind {
    // The frame is in the class that the JVM generates for a lambda. The code of the lambda itself is in a method of
    // the application.
    let is_generated = ["(proxy).", "(unknown method)"]
        .iter()
        .any(|p| frame.starts_with(p))
        || frame.contains(" (lambda).");
    if is_generated {
        FrameKind::Jdk
    } else if added_frameworks().any(|p| frame.starts_with(p)) {
        FrameKind::Added
    } else if frame.contains(" (proxy).") || packages::is_framework(frame) {
        FrameKind::Framework
    } else if is_jdk(frame) {
        FrameKind::Jdk
    } else {
        FrameKind::Application
    }
}

/// True if a frame is in application code that a programmer wrote.
#[must_use]
pub fn is_application_frame(frame: &str) -> bool {
    frame_kind(frame) == FrameKind::Application
}

/// Returns the kind of the most informative frames in a stack. Application frames are most informative. Frames of
/// frameworks that the user added come next, then frames of known frameworks. Returns `None` if all frames are of the
/// JDK.
fn informative_kind(frames: &[String]) -> Option<FrameKind> {
    let kinds = [
        FrameKind::Application,
        FrameKind::Added,
        FrameKind::Framework,
    ];
    let is_any = |kind: &FrameKind| frames.iter().any(|frame| frame_kind(frame) == *kind);
    kinds.into_iter().find(is_any)
}

/// True if a frame is in the JDK, or in code that the JVM generates.
#[must_use]
pub fn is_jdk_frame(frame: &str) -> bool {
    frame_kind(frame) == FrameKind::Jdk
}

/// Returns the most informative frames of a stack: the application's frames, or the frames of frameworks if no frame is
/// of the application.
pub(crate) fn informative_frames(frames: &[String]) -> impl Iterator<Item = &str> {
    let wanted = informative_kind(frames);
    let frames = frames.iter().map(String::as_str);
    frames.filter(move |frame| wanted == Some(frame_kind(frame)))
}

/// Returns the frame that identifies a stack: the innermost frame of the application. If no frame is of the
/// application, returns the innermost frame of a framework, or else the first frame.
#[must_use]
pub fn allocating_frame(frames: &[String]) -> Option<&str> {
    let leaf = frames.first().map(String::as_str);
    informative_frames(frames).next().or(leaf)
}

/// A part of a stack, as one line of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown<'a> {
    /// A frame.
    Frame(&'a str),
    /// Frames that are left out.
    Folded(Folded),
}

/// Number of frames that the line represents. `Display` writes the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Folded {
    /// Number of frames of the JDK.
    pub jdk: usize,
    /// Number of frames of frameworks.
    pub framework: usize,
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, whose) = match *self {
            Self { jdk, framework: 0 } => (jdk, "JDK"),
            Self { jdk: 0, framework } => (framework, "framework"),
            Self { jdk, framework } => (jdk + framework, "framework and JDK"),
        };
        let frames = if all == 1 { "frame" } else { "frames" };
        write!(f, "… {} {whose} {frames}", grouped(all as u64))
    }
}

/// The frames of a stack that a report shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frames {
    /// Each frame.
    All,
    /// Frames of the application only. If no frame is of the application, the frames of frameworks, or else all frames.
    Application,
    /// Each group of frames of the JDK and of frameworks is one line (`… 46 framework frames`). The report shows at
    /// most this number of lines.
    Folded(usize),
}

impl Frames {
    /// Returns the lines for a stack, and the number of frames that are missing at its end.
    #[must_use]
    pub fn of(self, frames: &[String]) -> (Vec<Shown<'_>>, usize) {
        match self {
            Self::All => (frames.iter().map(|f| Shown::Frame(f)).collect(), 0),
            Self::Application => match informative_frames(frames).next() {
                Some(_) => (informative_frames(frames).map(Shown::Frame).collect(), 0),
                None => Self::All.of(frames),
            },
            Self::Folded(limit) => {
                let mut shown = folded(frames);
                let more = shown.len().saturating_sub(limit);
                shown.truncate(limit);
                (shown, more)
            }
        }
    }
}

/// True for JDK frames between a call and the called method, such as the frames of method handles, reflection and
/// proxies. Applications do not call these methods directly.
fn is_call_plumbing(frame: &str) -> bool {
    const PLUMBING: [&str; 6] = [
        "java.lang.invoke.",
        "java.lang.reflect.",
        "java.lang.StringConcatHelper.",
        "jdk.",
        "sun.",
        "(proxy).",
    ];
    PLUMBING.iter().any(|p| frame.starts_with(p))
        || frame.contains(" (lambda).")
        || frame.contains(" (proxy).")
}

/// Folds frames of the JDK and of frameworks. The frame that the application called stays visible. If the stack has no
/// frame of the application, frames of added frameworks take its place, or else frames of known frameworks. If all
/// frames are of the JDK, nothing is folded.
pub(super) fn folded(frames: &[String]) -> Vec<Shown<'_>> {
    let telling = informative_kind(frames);
    let own = frames.iter().position(|f| telling == Some(frame_kind(f)));
    let Some(own) = own else {
        return frames.iter().map(|f| Shown::Frame(f)).collect();
    };
    let mut shown: Vec<Shown<'_>> = Vec::new();
    for (i, frame) in frames.iter().enumerate() {
        let kind = frame_kind(frame);
        let is_called = i + 1 == own && !is_call_plumbing(frame);
        if is_called || telling == Some(kind) {
            shown.push(Shown::Frame(frame));
            continue;
        }
        let mut one = match shown.last() {
            Some(Shown::Folded(folded)) => *folded,
            _ => Folded::default(),
        };
        match kind {
            FrameKind::Jdk => one.jdk += 1,
            _ => one.framework += 1,
        }
        match shown.last_mut() {
            Some(Shown::Folded(folded)) => *folded = one,
            _ => shown.push(Shown::Folded(one)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(frames: &[&str]) -> Vec<String> {
        frames.iter().map(|&f| f.to_owned()).collect()
    }

    #[test]
    fn frames_have_a_kind() {
        for (frame, kind) in [
            ("com.acme.Foo.add(Foo.java:42)", FrameKind::Application),
            (
                "com.acme.Foo.add (lambda)(Foo.java:42)",
                FrameKind::Application,
            ),
            ("java.util.HashMap.put(HashMap.java:611)", FrameKind::Jdk),
            ("com.acme.Foo (lambda).accept", FrameKind::Jdk),
            ("(proxy).run", FrameKind::Jdk),
            ("com.acme.Foo (proxy).add", FrameKind::Framework),
            (
                "org.springframework.web.A.b(A.java:1)",
                FrameKind::Framework,
            ),
            ("scala.collection.A.b(A.scala:1)", FrameKind::Framework),
            (
                "jakarta.servlet.http.HttpServlet.service(HttpServlet.java:658)",
                FrameKind::Framework,
            ),
            ("org.springframeworks.A.b(A.java:1)", FrameKind::Application),
        ] {
            assert_eq!(frame_kind(frame), kind, "{frame}");
        }
    }

    #[test]
    fn the_allocating_frame_is_the_innermost_application_frame() {
        let put = owned(&[
            "java.util.HashMap.newNode(H.java:1)",
            "a.Cache.put(C.java:2)",
        ]);
        assert_eq!(allocating_frame(&put), Some(&*put[1]));
        let served = owned(&[
            "java.util.HashMap.put(H.java:1)",
            "org.hibernate.A.b(A.java:1)",
            "java.lang.Thread.run(Thread.java:1)",
        ]);
        assert_eq!(allocating_frame(&served), Some(&*served[1]));
        let none = owned(&["java.lang.Thread.run(Thread.java:1)"]);
        assert_eq!(allocating_frame(&none), Some(&*none[0]));
        assert_eq!(allocating_frame(&[]), None);
    }

    #[test]
    fn jdk_and_framework_frames_are_folded() {
        let frames = owned(&[
            "java.util.Arrays.copyOf(Arrays.java:3512)",
            "java.util.ArrayList.add(ArrayList.java:4)",
            "com.acme.Foo.add (lambda)(Foo.java:42)",
            "com.acme.Foo (lambda).accept",
            "java.util.stream.ReferencePipeline.forEach(R.java:1)",
            "jdk.internal.reflect.DirectMethodHandleAccessor.invoke",
            "(proxy).run",
            "com.acme.Main.main(Main.java:7)",
            "org.springframework.A.b(A.java:1)",
            "org.apache.catalina.A.b(A.java:1)",
            "com.acme.Filter.run(F.java:1)",
            "org.apache.coyote.A.b(A.java:1)",
            "java.lang.Thread.run(Thread.java:1)",
        ]);
        let fold = |jdk, framework| Shown::Folded(Folded { jdk, framework });
        assert_eq!(
            folded(&frames),
            [
                fold(1, 0),
                Shown::Frame(&frames[1]),
                Shown::Frame(&frames[2]),
                fold(4, 0),
                Shown::Frame(&frames[7]),
                fold(0, 2),
                Shown::Frame(&frames[10]),
                fold(1, 1),
            ]
        );
        let concat = owned(&[
            "java.lang.StringConcatHelper.newArray",
            "com.acme.Main.main",
        ]);
        assert_eq!(folded(&concat), [fold(1, 0), Shown::Frame(&concat[1])]);
        // If there are no frames of the JDK or of frameworks, nothing is folded.
        assert_eq!(folded(&frames[..2]).len(), 2);
        assert_eq!(
            folded(&frames[8..10]),
            [Shown::Frame(&frames[8]), Shown::Frame(&frames[9])]
        );
    }

    #[test]
    fn known_frameworks_stay_folded_if_the_application_is_an_added_framework() {
        // Added frameworks apply to the whole process. No other test uses frames with this prefix, so the test can add
        // it.
        add_frameworks(vec!["org.everything.".to_owned()]);
        let frames = owned(&[
            "java.util.ArrayList.add(ArrayList.java:4)",
            "org.everything.Orders.add(Orders.java:42)",
            "org.springframework.A.b(A.java:1)",
            "io.netty.A.b(A.java:1)",
            "org.everything.Main.main(Main.java:7)",
            "com.acme.Foo.add(Foo.java:42)",
        ]);
        let fold = |jdk, framework| Shown::Folded(Folded { jdk, framework });
        assert_eq!(
            folded(&frames[..5]),
            [
                Shown::Frame(&frames[0]),
                Shown::Frame(&frames[1]),
                fold(0, 2),
                Shown::Frame(&frames[4]),
            ]
        );
        assert_eq!(allocating_frame(&frames[..5]), Some(&*frames[1]));
        // If the stack has application frames, the frames of all frameworks are folded, except for the frame that the
        // application called.
        let called = [
            fold(1, 3),
            Shown::Frame(&frames[4]),
            Shown::Frame(&frames[5]),
        ];
        assert_eq!(folded(&frames), called);
        // If all frames are of known frameworks, they are shown.
        assert_eq!(folded(&frames[2..4]).len(), 2);
    }

    #[test]
    fn folded_lines_name_the_kind_of_their_frames() {
        for (jdk, framework, line) in [
            (1, 0, "… 1 JDK frame"),
            (0, 46, "… 46 framework frames"),
            (3, 46, "… 49 framework and JDK frames"),
        ] {
            assert_eq!(Folded { jdk, framework }.to_string(), line);
        }
    }

    #[test]
    fn frames_are_selected_by_kind() {
        let frames = owned(&[
            "java.util.ArrayList.add(ArrayList.java:4)",
            "a.B.c(B.java:1)",
            "io.netty.A.b(A.java:1)",
            "a.D.e(D.java:1)",
        ]);
        assert_eq!(Frames::All.of(&frames).0.len(), 4);
        let own = [Shown::Frame(&frames[1]), Shown::Frame(&frames[3])];
        assert_eq!(Frames::Application.of(&frames), (own.to_vec(), 0));
        let (shown, more) = Frames::Folded(2).of(&frames);
        assert_eq!((shown.len(), more), (2, 2));
    }
}
