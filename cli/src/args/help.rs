//! Completes the help of each command: its examples, and the formats that its report has. Other formats are parsed, too, and refused
//! with a hint to the commands that have them.

use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use heapdiff_report::Format;

use super::examples;
use crate::job::Formats;

const FORMAT: &str = "format";

/// Returns the formats of the command with these names, from the first below the program on; `None` if its `--format` is not that of
/// reports.
fn formats(names: &[&str]) -> Option<Formats> {
    Some(match names {
        [] | ["diff" | "hunt"] => Formats::Growth,
        ["sites"] => Formats::Sites,
        ["query"] => Formats::Rows,
        ["export"] => Formats::Tables,
        ["trace", "flame"] => Formats::Flame,
        ["trace", "export"] => return None,
        _ => Formats::Plain,
    })
}

/// Returns the command line with the formats and examples of each command.
pub(super) fn complete(command_line: Command) -> Command {
    completed(command_line, &[])
}

fn completed(command: Command, names: &[&str]) -> Command {
    let has_formats = command.get_arguments().any(|arg| arg.get_id() == FORMAT);
    let command = match formats(names).filter(|_| has_formats) {
        Some(formats) => command.mut_arg(FORMAT, |arg| {
            let shown =
                |format: &Format| PossibleValue::new(format.name()).hide(!formats.have(*format));
            let parser = PossibleValuesParser::new(Format::ALL.iter().map(shown));
            arg.value_parser(parser.map(|name| Format::by_name(&name).unwrap_or_default()))
        }),
        None => command,
    };
    let command = examples::with_examples(command, names);
    command.mut_subcommands(|below| {
        let name = below.get_name().to_owned();
        completed(below, &[names, &[&name]].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command_line;

    fn shown(names: &[&str]) -> Vec<String> {
        let mut command = &command_line();
        for name in names {
            command = command.find_subcommand(name).unwrap();
        }
        let mut all = command.get_arguments();
        let format = all.find(|arg| arg.get_id() == FORMAT).unwrap();
        let values = format.get_possible_values().into_iter();
        let shown = values.filter(|value| !value.is_hide_set());
        shown.map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn a_command_lists_its_own_formats() {
        assert_eq!(shown(&["histo"]), ["text", "json"]);
        assert_eq!(shown(&["query"]), ["text", "json", "csv", "parquet"]);
        assert_eq!(shown(&["export"]), ["csv", "parquet"]);
        assert!(shown(&["trace", "export"]).contains(&"pprof".to_owned()));
        assert_eq!(shown(&["trace", "flame"]), ["html", "collapsed", "svg"]);
        assert_eq!(shown(&["diff"]), shown(&[]));
        assert!(shown(&["diff"]).contains(&"junit".to_owned()));
        assert!(!shown(&["sites"]).contains(&"junit".to_owned()));
    }
}
