//! Tests of the whole command line: examples, formats and length of the help.

use clap::{Command, CommandFactory};

use super::Cli;

/// Splits a command line into words as a shell does. A redirection of the output is left out.
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

/// Returns the command lines of the examples in a command's help.
fn examples(command: &Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string);
    let text = text.unwrap_or_default();
    let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("  "));
    let lines = lines.filter(|line| !line.starts_with('#'));
    let line = |line: &str| line.split("  #").next().unwrap().trim_end().to_owned();
    lines.map(line).collect()
}

#[test]
fn every_command_has_examples_that_parse() {
    fn check(command: &Command) {
        if !command.is_hide_set() && command.get_name() != "help" {
            let examples = examples(command);
            assert!(examples.len() >= 2, "{}", command.get_name());
            for line in examples.iter().filter(|l| l.starts_with("heapdiff ")) {
                let parsed = Cli::command().try_get_matches_from(words(line));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// clap would wrap a longer line, and the line break could be in the middle of a command or table.
#[test]
fn explanations_are_not_wrapped() {
    fn check(command: &Command) {
        let text = command.get_after_help().map(ToString::to_string);
        for line in text.unwrap_or_default().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
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
    check(&Cli::command());
}

fn shown(names: &[&str]) -> Vec<String> {
    let mut command = &Cli::command();
    for name in names {
        command = command.find_subcommand(name).unwrap();
    }
    let mut all = command.get_arguments();
    let format = all.find(|arg| arg.get_id() == "format").unwrap();
    let values = format.get_possible_values().into_iter();
    let shown = values.filter(|value| !value.is_hide_set());
    shown.map(|value| value.get_name().to_owned()).collect()
}

#[test]
fn a_command_lists_its_own_formats() {
    assert_eq!(shown(&["query"]), ["text", "json", "csv", "parquet"]);
    assert_eq!(shown(&["export"]), ["csv", "parquet"]);
    assert!(shown(&["trace", "export"]).contains(&"pprof".to_owned()));
    assert_eq!(shown(&["trace", "flame"]), ["html", "collapsed", "svg"]);
    assert_eq!(shown(&["diff"]), shown(&[]));
    assert!(shown(&["diff"]).contains(&"junit".to_owned()));
    assert!(!shown(&["sites"]).contains(&"junit".to_owned()));
}
