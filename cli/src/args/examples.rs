//! The examples that `--help` and the manual show for each command.

use clap::Command;

/// A command line, and what it does.
type Example = (&'static str, &'static str);

/// Examples by the names of the command, from the first below the program on.
const EXAMPLES: &[(&[&str], &[Example])] = &[
    (
        &[],
        &[
            (
                "heapdiff before.hprof after.hprof",
                "what grew, and what holds it",
            ),
            ("heapdiff app.hprof", "what retains the most in one dump"),
            (
                "heapdiff hunt 4711 --for 5m",
                "find a leak in the JVM with process id 4711",
            ),
        ],
    ),
    (
        &["diff"],
        &[
            (
                "heapdiff before.hprof after.hprof",
                "what grew, and what holds it",
            ),
            (
                "heapdiff 1.hprof 2.hprof 3.hprof -o report.html",
                "compare three dumps, as a web page",
            ),
            (
                "heapdiff 1.hprof 2.hprof --fail-on-growth 10%",
                "exit with 1 if the heap grew by at least 10 %",
            ),
        ],
    ),
    (
        &["histo"],
        &[
            (
                "heapdiff histo app.hprof",
                "objects and bytes of each class",
            ),
            (
                "heapdiff histo app.hprof --retained --top 20",
                "the 20 classes that retain the most",
            ),
        ],
    ),
    (
        &["top"],
        &[
            (
                "heapdiff top app.hprof --top 20",
                "the 20 objects that retain the most",
            ),
            (
                "heapdiff top app.hprof --under 0x7f0012345678",
                "the objects that this object dominates directly",
            ),
        ],
    ),
    (
        &["sizeof"],
        &[
            (
                "heapdiff sizeof app.hprof com.acme.Cache",
                "size of each Cache object, and of all together",
            ),
            (
                "heapdiff sizeof app.hprof com.acme.Cache.map --tree",
                "where the bytes are, field by field",
            ),
        ],
    ),
    (
        &["show"],
        &[
            (
                "heapdiff show app.hprof 0x7f0012345678",
                "one object, its fields and referrers",
            ),
            (
                "heapdiff show app.hprof com.acme.Session --top 5",
                "the 5 Session objects that retain the most",
            ),
        ],
    ),
    (
        &["paths"],
        &[
            (
                "heapdiff paths app.hprof com.acme.Session",
                "why Session objects are not freed",
            ),
            (
                "heapdiff paths app.hprof /Order$/ --refs strong",
                "paths of strong references only",
            ),
        ],
    ),
    (
        &["waste"],
        &[
            (
                "heapdiff waste app.hprof",
                "how much memory could be saved, and where",
            ),
            (
                "heapdiff waste monday.hprof friday.hprof",
                "how the waste grew",
            ),
        ],
    ),
    (
        &["threads"],
        &[
            (
                "heapdiff threads app.hprof",
                "the threads that retain the most",
            ),
            (
                "heapdiff threads app.hprof -v -o threads.json",
                "all frames, as JSON",
            ),
        ],
    ),
    (
        &["sites"],
        &[
            ("heapdiff sites app.hprof", "live bytes by allocation stack"),
            (
                "heapdiff sites app.hprof -o flame.html",
                "live bytes as a flame graph",
            ),
            (
                "heapdiff sites app.jfr --allocated --by class",
                "all allocated objects, by class",
            ),
        ],
    ),
    (
        &["query"],
        &[
            (
                "heapdiff query a.hprof \"select class, objects from classes order by objects desc limit 10\"",
                "the 10 classes with the most objects",
            ),
            (
                "heapdiff query a.hprof \"select * from refs where target_id = 0x7f0012345678\" -o refs.csv",
                "all references to an object, as CSV",
            ),
            (
                "heapdiff query a.hprof .tables",
                "list the tables (`.schema objects` lists columns)",
            ),
        ],
    ),
    (
        &["export"],
        &[
            (
                "heapdiff export app.hprof -o tables",
                "all tables as Parquet files",
            ),
            (
                "heapdiff export app.hprof -o tables --tables objects,refs --format csv",
                "two tables as CSV",
            ),
        ],
    ),
    (
        &["summarize"],
        &[
            (
                "heapdiff summarize monday.hprof -o monday.heap",
                "write the summary",
            ),
            (
                "heapdiff monday.heap friday.hprof",
                "compare a later dump with the summary",
            ),
        ],
    ),
    (
        &["redact"],
        &[
            (
                "heapdiff redact app.hprof -o safe.hprof.gz",
                "write a copy for other people",
            ),
            (
                "heapdiff redact safe.hprof.gz --check",
                "list the sensitive content of this dump",
            ),
        ],
    ),
    (
        &["ps"],
        &[
            ("heapdiff ps", "list the JVMs"),
            (
                "heapdiff hunt 4711 --for 5m",
                "find a leak in the JVM with process id 4711",
            ),
        ],
    ),
    (
        &["status"],
        &[
            ("heapdiff status 4711", "the JVM with process id 4711"),
            (
                "heapdiff status OrderService",
                "the JVM whose main class or jar contains this name",
            ),
        ],
    ),
    (
        &["attach"],
        &[
            ("heapdiff attach 4711", "sample allocations from now on"),
            (
                "heapdiff attach 4711 interval=64k,trace=/tmp/app.db",
                "sample more often, and record a trace",
            ),
        ],
    ),
    (
        &["detach"],
        &[
            ("heapdiff detach 4711", "stop sampling"),
            (
                "heapdiff detach OrderService --timeout 1m",
                "wait up to a minute for a busy JVM",
            ),
        ],
    ),
    (
        &["agent"],
        &[
            (
                "java -agentpath:$(heapdiff agent)=interval=512k -jar app.jar",
                "start a JVM with the agent",
            ),
            (
                "heapdiff agent -o image/lib",
                "copy the library into a container image",
            ),
        ],
    ),
    (
        &["dump"],
        &[
            (
                "heapdiff dump 4711 -o app.hprof.gz",
                "a compressed dump of the live objects",
            ),
            (
                "heapdiff dump 4711 --fork",
                "a dump that pauses the JVM only for milliseconds",
            ),
        ],
    ),
    (
        &["hunt"],
        &[
            (
                "heapdiff hunt 4711 --for 10m",
                "two dumps, 10 minutes apart, and a report",
            ),
            (
                "heapdiff hunt 4711 --no-files",
                "a hunt that writes no files",
            ),
        ],
    ),
    (
        &["count"],
        &[
            (
                "heapdiff count 4711 --for 1m",
                "count all allocations for one minute",
            ),
            (
                "heapdiff count 4711 --include '^com\\.acme\\.' --jdk",
                "count in matching classes only, also in JDK classes",
            ),
        ],
    ),
    (
        &["index"],
        &[
            (
                "heapdiff index clean app.hprof",
                "delete the index of one dump",
            ),
            (
                "heapdiff index clean",
                "delete all files of the cache folder",
            ),
        ],
    ),
    (
        &["index", "clean"],
        &[
            (
                "heapdiff index clean app.hprof",
                "delete the index of one dump",
            ),
            (
                "heapdiff index clean dumps/",
                "delete all indexes in a folder",
            ),
        ],
    ),
    (
        &["trace"],
        &[
            (
                "heapdiff attach 4711 trace=/tmp/app.db",
                "let the agent record a trace",
            ),
            (
                "heapdiff trace top /tmp/app.db",
                "what leaks, and since when",
            ),
        ],
    ),
    (
        &["trace", "info"],
        &[
            ("heapdiff trace info app.db", "what the trace contains"),
            (
                "heapdiff trace info app.db --format json",
                "the contents of the trace as JSON",
            ),
        ],
    ),
    (
        &["trace", "top"],
        &[
            (
                "heapdiff trace top app.db",
                "frames that allocate, by growth of live bytes",
            ),
            (
                "heapdiff trace top app.db --by class --window 1h",
                "classes by growth, in the last hour",
            ),
        ],
    ),
    (
        &["trace", "flame"],
        &[
            (
                "heapdiff trace flame app.db -o flame.html",
                "all allocated bytes, by stack",
            ),
            (
                "heapdiff trace flame app.db --live -o flame.svg",
                "bytes that are live at the end, by stack",
            ),
        ],
    ),
    (
        &["trace", "samples"],
        &[
            (
                "heapdiff trace samples app.db --focus Session",
                "live samples with Session in class or stack",
            ),
            (
                "heapdiff trace samples app.db --garbage recent",
                "samples of the objects that the GC freed last",
            ),
        ],
    ),
    (
        &["trace", "export"],
        &[
            (
                "heapdiff trace export app.db --format csv -o tables",
                "all tables as CSV files",
            ),
            (
                "heapdiff trace export app.db --format pprof --slice 5m -o profiles",
                "one profile per 5 minutes",
            ),
        ],
    ),
    (
        &["trace", "push"],
        &[
            (
                "heapdiff trace push app.db http://localhost:4040",
                "send the latest live bytes once",
            ),
            (
                "heapdiff trace push app.db http://localhost:4040 --every 15s",
                "send the live bytes every 15 seconds until the JVM ends",
            ),
        ],
    ),
    (
        &["trace", "prune"],
        &[
            (
                "heapdiff trace prune app.db --before 24h",
                "keep the last 24 hours",
            ),
            (
                "heapdiff trace prune app.db --before 7d -q",
                "keep a week, and print nothing",
            ),
        ],
    ),
    (
        &["trace", "import"],
        &[
            (
                "heapdiff trace import app.jfr -o app.db",
                "import one recording",
            ),
            (
                "heapdiff trace import 1.jfr 2.jfr -o app.db --service shop",
                "import two files of one recording",
            ),
        ],
    ),
    (
        &["ui"],
        &[
            (
                "heapdiff ui /tmp/app.db --open",
                "watch a running JVM in the browser",
            ),
            ("heapdiff ui report.json", "show a report of two dumps"),
        ],
    ),
    (
        &["fleet"],
        &[
            (
                "heapdiff fleet app.db -o fleet --service shop",
                "add a trace to the folder",
            ),
            (
                "heapdiff fleet reports/a.json reports/b.json -o fleet",
                "add two reports to the folder",
            ),
        ],
    ),
    (
        &["mcp"],
        &[
            (
                "heapdiff mcp",
                "serve tools to the AI assistant that starts this command",
            ),
            (
                "heapdiff mcp --max-memory 4GiB",
                "the same, with a memory limit for large dumps",
            ),
        ],
    ),
    (
        &["completions"],
        &[
            (
                "heapdiff completions bash > /etc/bash_completion.d/heapdiff",
                "completions in bash, for all users",
            ),
            (
                "heapdiff completions zsh > ~/.zfunc/_heapdiff",
                "completions in zsh, for this user",
            ),
        ],
    ),
];

/// Maximum width of a line, which keeps clap from wrapping it.
const WIDTH: usize = 98;

/// Puts the examples of the command with these names before its other explanations.
pub(super) fn with_examples(command: Command, names: &[&str]) -> Command {
    let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == names) else {
        return command;
    };
    let mut text = shown(examples);
    if let Some(more) = command.get_after_help() {
        text.push_str("\n\n");
        text.push_str(&more.to_string());
    }
    command.after_help(text)
}

/// Comments follow the command lines if all of them fit, otherwise each is on a line above.
fn shown(examples: &[Example]) -> String {
    let command = examples.iter().map(|(command, _)| command.len()).max();
    let comment = examples.iter().map(|(_, comment)| comment.len()).max();
    let (command, comment) = (command.unwrap_or(0), comment.unwrap_or(0));
    let mut text = "Examples:".to_owned();
    for (line, what) in examples {
        text += &if command + comment + 6 <= WIDTH {
            format!("\n  {line:command$}  # {what}")
        } else {
            format!("\n  # {what}\n  {line}")
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command_line;

    /// Splits a command line as a shell does, without the redirection of output.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap();
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.chars() {
            match (quote, c) {
                (None, '"' | '\'') => quote = Some(c),
                (Some(open), _) if open == c => quote = None,
                (None, ' ') => words.push(String::new()),
                _ => words.last_mut().unwrap().push(c),
            }
        }
        words
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        fn check(command: &Command, names: &[&str]) {
            let known = EXAMPLES.iter().find(|(of, _)| *of == names);
            if !command.is_hide_set() && command.get_name() != "help" {
                let examples = known.unwrap_or_else(|| panic!("no examples: {names:?}")).1;
                assert!(examples.len() >= 2, "{names:?}");
                for (line, _) in examples.iter().filter(|(l, _)| l.starts_with("heapdiff ")) {
                    let parsed = command_line().try_get_matches_from(words(line));
                    assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                }
            }
            for below in command.get_subcommands() {
                check(below, &[names, &[below.get_name()]].concat());
            }
        }
        check(&command_line(), &[]);
    }

    /// clap would wrap a longer line in the middle of a command or table.
    #[test]
    fn explanations_are_not_wrapped() {
        fn check(command: &Command) {
            let text = command.get_after_help().map(ToString::to_string);
            for line in text.unwrap_or_default().lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
            command.get_subcommands().for_each(check);
        }
        check(&command_line());
    }

    /// A line of help has at most 25 words.
    #[test]
    fn help_lines_are_short() {
        fn check(command: &Command) {
            for arg in command.get_arguments() {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let help = help.split(" [default: ").next().unwrap_or_default();
                let words = help.split_whitespace().count();
                assert!((1..=25).contains(&words), "{}: {help}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&command_line());
    }
}
