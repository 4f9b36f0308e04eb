//! Answers the requests of the page: `runs`, `overview`, `view`, `counted`, `between`, `stacks`.

use serde::Serialize;

use crate::amount::Measure;
use crate::between::between;
use crate::by::By;
use crate::counted::counted;
use crate::http::{Answer, Status};
use crate::key::Key;
use crate::runs;
use crate::stacks::{Of, stacks};
use crate::traces::Traces;
use crate::view::{MOST_LINES, MOST_POINTS, Question, overview, view};

/// Answers one request: `question` is its name, `query` its parameters.
pub(crate) fn answer(question: &str, query: &str, traces: &Traces) -> Answer {
    let asked = match Asked::parse(query) {
        Ok(asked) => asked,
        Err(wrong) => return fault(Status::BadRequest, &wrong),
    };
    let with_runs = || {
        let mut question = asked.question.clone();
        if question.runs.is_empty() {
            question.runs = runs::keys(traces);
        }
        question
    };
    let answered = match question {
        "runs" => return json(&runs::list(traces)),
        "overview" => overview(traces, &with_runs()).map(|o| json(&o)),
        "view" => view(traces, &with_runs()).map(|v| json(&v)),
        "counted" => counted(traces, &with_runs()).map(|c| json(&c)),
        "between" => {
            let (Some(from), Some(to)) = (asked.question.from, asked.question.to) else {
                return fault(
                    Status::BadRequest,
                    "the parameters `from` and `to` are required",
                );
            };
            between(traces, &with_runs(), (from, to)).map(|b| json(&b))
        }
        "stacks" => stacks(traces, &with_runs(), &asked.of).map(|t| json(&t)),
        _ => return fault(Status::NotFound, "unknown API path"),
    };
    answered.unwrap_or_else(|unanswered| fault(Status::Unusable, &unanswered.0))
}

fn json(data: &impl Serialize) -> Answer {
    match serde_json::to_vec(data) {
        Ok(body) => Answer::json(Status::Ok, body),
        Err(e) => fault(Status::Unusable, &e.to_string()),
    }
}

fn fault(status: Status, said: &str) -> Answer {
    let body = serde_json::json!({ "fault": said }).to_string();
    Answer::json(status, body.into_bytes())
}

#[derive(Debug)]
struct Asked {
    question: Question,
    of: Of,
}

impl Asked {
    fn parse(query: &str) -> Result<Self, String> {
        let mut asked = Self {
            question: Question {
                runs: Vec::new(),
                from: None,
                to: None,
                by: By::default(),
                measure: Measure::Bytes,
                top: 10,
                points: MOST_POINTS,
            },
            of: Of::All,
        };
        let question = &mut asked.question;
        let (mut class, mut place) = (None, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = || format!("invalid parameter {name}={value}");
            match &*name {
                "runs" => {
                    let keys = value.split(',').filter(|k| !k.is_empty()).map(str::parse);
                    question.runs = keys.collect::<Result<_, ()>>().map_err(|()| wrong())?;
                }
                "from" => question.from = Some(value.parse().map_err(|_| wrong())?),
                "to" => question.to = Some(value.parse().map_err(|_| wrong())?),
                "by" => question.by = By::parse(&value).ok_or_else(wrong)?,
                "measure" => {
                    question.measure = match &*value {
                        "bytes" => Measure::Bytes,
                        "objects" => Measure::Objects,
                        _ => return Err(wrong()),
                    }
                }
                "top" => {
                    question.top = value.parse::<usize>().map_err(|_| wrong())?.min(MOST_LINES)
                }
                "points" => {
                    question.points = value
                        .parse::<usize>()
                        .map_err(|_| wrong())?
                        .min(MOST_POINTS);
                }
                "class" => class = Some(value.into_owned()),
                "place" => place = Some(value.into_owned()),
                "at" => {
                    let site = |text: &str| -> Option<(Key, i64)> {
                        let (key, site) = text.split_once(':')?;
                        Some((key.parse().ok()?, site.parse().ok()?))
                    };
                    let sites = value.split(',').map(site).collect::<Option<_>>();
                    asked.of = Of::Sites(sites.ok_or_else(wrong)?);
                }
                _ => return Err(wrong()),
            }
        }
        match (class, place) {
            (Some(class), Some(place)) => asked.of = Of::Place(class, place),
            (Some(class), None) => asked.of = Of::Class(class),
            (None, Some(_)) => {
                return Err("the parameter `place` requires the parameter `class`".to_owned());
            }
            (None, None) => {}
        }
        Ok(asked)
    }
}
