//! The schedulers by name, with their parameters: `exclusive:lease=20ms`, `default:quantum=2ms,share=70%`.

use super::anticipatory::Anticipatory;
use super::deadline::{Deadlines, SHARE_PERCENT};
use super::deficit::{self, Deficit};
use super::exclusive::{Exclusive, LEASE_NS};
use super::oldest::Oldest;
use super::round_robin::{self, RoundRobin};
use super::shortest::{AGE_NS, Shortest};
use super::weighted::Weighted;
use super::{Discipline, Modules, Route, failover::Failover, soonest::Soonest, split::Split};
use crate::{EngineInfo, Policy};
use std::fmt::Write as _;

/// The names that [`parse`] knows.
pub const NAMES: &[&str] = &["exclusive", "rr", "drr", "wfq", "sjf", "edf", "anticipatory", "default", "split", "failover"];

/// A scheduler, its parameters and what they are if nothing is said.
struct Scheduler {
    name: &'static str,
    about: &'static str,
    parameters: &'static [Parameter],
    make: fn(&Chosen) -> Box<dyn Discipline>,
    route: fn() -> Box<dyn Route>,
}

struct Parameter {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    /// `None`: worked out, as `about` says.
    default: Option<u64>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Nanoseconds, more than 0.
    Time,
    /// 1 to 100.
    Percent,
}

const fn time(name: &'static str, about: &'static str, default: Option<u64>) -> Parameter {
    Parameter { name, about, kind: Kind::Time, default }
}

const QUANTUM: Parameter = time("quantum", "a turn's time; if left out 8 switches of the module, and 24 for who has used one up", None);
const SHARE: Parameter = Parameter {
    name: "share",
    about: "of the module's time that the class of deadlines may use",
    kind: Kind::Percent,
    default: Some(SHARE_PERCENT),
};

fn soonest() -> Box<dyn Route> {
    Box::new(Soonest)
}

const SCHEDULERS: &[Scheduler] = &[
    Scheduler {
        name: "exclusive",
        about: "a session holds the module until it is closed (ohgama2008's sched list)",
        parameters: &[
            time("lease", "how long its holder may pause", Some(LEASE_NS)),
            time("hold", "after which it gives way if others wait; never if left out", None),
        ],
        make: |chosen| Box::new(Exclusive::new(chosen.figure("lease", LEASE_NS), chosen.get("hold"))),
        route: soonest,
    },
    Scheduler {
        name: "rr",
        about: "sessions in turn",
        parameters: &[time("quantum", "a turn's time", Some(round_robin::QUANTUM_NS))],
        make: |chosen| Box::new(RoundRobin::new(chosen.figure("quantum", round_robin::QUANTUM_NS))),
        route: soonest,
    },
    Scheduler {
        name: "drr",
        about: "tenants in turn, by weight of what is waiting (deficit round robin): no shares for programs that wait for each result",
        parameters: &[time("quantum", "a turn's time at weight 1", Some(deficit::QUANTUM_NS))],
        make: |chosen| Box::new(Deficit::new(chosen.figure("quantum", deficit::QUANTUM_NS))),
        route: soonest,
    },
    Scheduler {
        name: "wfq",
        about: "the tenant with the least time for its weight (weighted fair queueing)",
        parameters: &[],
        make: |_| Box::new(Weighted::default()),
        route: soonest,
    },
    Scheduler {
        name: "sjf",
        about: "the shortest operation, with ageing",
        parameters: &[time("age", "after which the oldest goes first", Some(AGE_NS))],
        make: |chosen| Box::new(Shortest::new(chosen.figure("age", AGE_NS))),
        route: soonest,
    },
    Scheduler {
        name: "edf",
        about: "earliest deadline where it can be met, over wfq",
        parameters: &[SHARE],
        make: |chosen| Box::new(Deadlines::over(Box::new(Weighted::default()), chosen.figure("share", SHARE_PERCENT))),
        route: soonest,
    },
    Scheduler {
        name: "anticipatory",
        about: "stays with a session and waits a little for it where a switch is dear, over oldest first",
        parameters: &[QUANTUM],
        make: |chosen| Box::new(Anticipatory::over(Box::new(Oldest), chosen.get("quantum"))),
        route: soonest,
    },
    Scheduler {
        name: "default",
        about: "edf over anticipatory over wfq",
        parameters: &[QUANTUM, SHARE],
        make: |chosen| {
            let weighted = Box::new(Weighted::default());
            let anticipatory = Box::new(Anticipatory::over(weighted, chosen.get("quantum")));
            Box::new(Deadlines::over(anticipatory, chosen.figure("share", SHARE_PERCENT)))
        },
        route: soonest,
    },
    Scheduler {
        name: "split",
        about: "over several engines: each size where it is done soonest",
        parameters: &[],
        make: |_| Box::new(Oldest),
        route: || Box::new(Split),
    },
    Scheduler {
        name: "failover",
        about: "over several engines: the first that works",
        parameters: &[],
        make: |_| Box::new(Oldest),
        route: || Box::new(Failover::default()),
    },
];

/// A scheduler with its parameters, and of `split` and `failover` what each of their engines has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    place: usize,
    values: Vec<(&'static str, u64)>,
    each: Option<Box<Chosen>>,
}

impl Chosen {
    /// Its name, without parameters.
    pub fn name(&self) -> &'static str {
        SCHEDULERS[self.place].name
    }

    /// A policy of it for these engines.
    ///
    /// # Panics
    /// With more than [`ENGINES_MAX`](crate::ENGINES_MAX) engines.
    pub fn policy(&self, engines: &[EngineInfo]) -> Box<dyn Policy> {
        let scheduler = &SCHEDULERS[self.place];
        Box::new(Modules::new(scheduler.name, engines, (scheduler.route)(), |_| self.discipline()))
    }

    fn discipline(&self) -> Box<dyn Discipline> {
        match &self.each {
            Some(each) => each.discipline(),
            None => (SCHEDULERS[self.place].make)(self),
        }
    }

    fn get(&self, parameter: &str) -> Option<u64> {
        self.values.iter().find(|(name, _)| *name == parameter).map(|&(_, value)| value)
    }

    fn figure(&self, parameter: &str, otherwise: u64) -> u64 {
        self.get(parameter).unwrap_or(otherwise)
    }
}

/// Reads `NAME` or `NAME:PARAMETER=VALUE,...`. `split` and `failover` take `each=NAME` (with that scheduler's parameters after it) for what is at each engine.
///
/// # Errors
/// A sentence that names the part that cannot be read, and what can be.
pub fn parse(text: &str) -> Result<Chosen, String> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let place = SCHEDULERS.iter().position(|scheduler| scheduler.name == name);
    let place = place.ok_or_else(|| format!("no scheduler '{name}'; there are {}", NAMES.join(", ")))?;
    if let Some(each) = parameters.strip_prefix("each=").filter(|_| over_engines(name)) {
        let inner = parse(&each.replacen(',', ":", 1)).map_err(|reason| format!("scheduler '{text}': each: {reason}"))?;
        if over_engines(inner.name()) {
            return Err(format!(
                "scheduler '{text}': each of its engines needs a scheduler for one engine, which '{}' is not",
                inner.name()
            ));
        }
        return Ok(Chosen { place, values: Vec::new(), each: Some(Box::new(inner)) });
    }
    let scheduler = &SCHEDULERS[place];
    let values = parameters.split(',').filter(|part| !part.is_empty()).map(|part| value(scheduler, part));
    let values = values.collect::<Result<Vec<_>, _>>().map_err(|reason| format!("scheduler '{text}': {reason}"))?;
    Ok(Chosen { place, values, each: None })
}

fn over_engines(name: &str) -> bool {
    matches!(name, "split" | "failover")
}

fn value(scheduler: &Scheduler, part: &str) -> Result<(&'static str, u64), String> {
    let (name, value) = part.split_once('=').ok_or_else(|| format!("'{part}' is not of the form PARAMETER=VALUE"))?;
    let Some(parameter) = scheduler.parameters.iter().find(|parameter| parameter.name == name) else {
        let known: Vec<&str> = scheduler.parameters.iter().map(|parameter| parameter.name).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        return Err(format!("no parameter '{name}'; {known}"));
    };
    let read = match parameter.kind {
        Kind::Time => nanoseconds(value).ok_or("a time above 0 such as 500us, 20ms or 1s"),
        Kind::Percent => value.trim_end_matches('%').parse().ok().filter(|percent| (1..=100).contains(percent)).ok_or("1% to 100%"),
    };
    read.map(|read| (parameter.name, read)).map_err(|wanted| format!("{name} is '{value}', but must be {wanted}"))
}

/// A time such as `20ms`; `None` for what is none above 0.
pub(crate) fn nanoseconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = digits.parse::<f64>().ok()? * unit;
    (1.0..1e18).contains(&ns).then_some(ns as u64)
}

/// What there is, a line for each scheduler and one for each parameter, for people.
pub fn help() -> String {
    let mut text = String::new();
    for Scheduler { name, about, parameters, .. } in SCHEDULERS {
        let _ = writeln!(text, "{name:<14}{about}");
        for Parameter { name, about, kind, default } in *parameters {
            let default = match (kind, default) {
                (_, None) => String::new(),
                (Kind::Time, Some(ns)) => format!(" [{} ms]", *ns as f64 / 1e6),
                (Kind::Percent, Some(percent)) => format!(" [{percent}%]"),
            };
            let _ = writeln!(text, "{:<14}  {name}=: {about}{default}", "");
        }
        if over_engines(name) {
            let _ = writeln!(text, "{:<14}  each=: the scheduler at each of the engines [oldest first]", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_table_agree() {
        assert_eq!(SCHEDULERS.iter().map(|scheduler| scheduler.name).collect::<Vec<_>>(), NAMES);
        use crate::schedule::anticipatory::{FIRST_SWITCHES, QUANTUM_SWITCHES};
        assert_eq!((FIRST_SWITCHES, QUANTUM_SWITCHES), (8.0, 24.0), "as the help says");
        for name in NAMES {
            assert!(help().lines().any(|line| line.split(' ').next() == Some(name)), "{name}");
            assert_eq!(parse(name).unwrap().policy(&[]).name(), *name);
        }
    }

    #[test]
    fn parameters_are_read() {
        assert_eq!(parse("exclusive:lease=1.5ms").unwrap().get("lease"), Some(1_500_000));
        assert_eq!(parse("exclusive").unwrap().figure("lease", 7), 7);
        let chosen = parse("default:quantum=2ms,share=70%").unwrap();
        assert_eq!((chosen.get("quantum"), chosen.get("share")), (Some(2_000_000), Some(70)));
        let nested = parse("split:each=rr,quantum=3ms").unwrap();
        assert_eq!((nested.name(), nested.each.unwrap().get("quantum")), ("split", Some(3_000_000)));
    }

    #[test]
    fn errors_say_what_is_possible() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("wfq:quantum=1ms"), "scheduler 'wfq:quantum=1ms': no parameter 'quantum'; it has none");
        assert!(error("lottery").contains("no scheduler 'lottery'; there are exclusive, rr,"));
        assert!(error("rr:quant=1ms").contains("it has quantum"));
        assert!(error("rr:quantum").contains("PARAMETER=VALUE"));
        for wrong in ["", "5", "0ms", "-1ms", "ms", "1e30s", "NaNs", "5 parsecs"] {
            assert!(error(&format!("rr:quantum={wrong}")).contains("such as 500us"), "{wrong}");
        }
        assert!(error("edf:share=0%").contains("1% to 100%"));
        assert!(error("split:each=failover").contains("for one engine"));
        assert!(error("failover:each=rr,quantum=x").contains("such as"));
    }
}
