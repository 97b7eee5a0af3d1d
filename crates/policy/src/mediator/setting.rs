//! What an operator prefers, by name: `mediator:prefer=cpu-free,wait=500us`.

use crate::schedule::nanoseconds;
use core::fmt;
use core::str::FromStr;

/// The mediator's name.
pub const NAME: &str = "mediator";

/// What counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// That each request is done soon.
    #[default]
    Latency,
    /// That all of them are done soon.
    Throughput,
    /// That the processor is left to others.
    CpuFree,
    /// That little energy is used.
    Energy,
}

impl Prefer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Latency, Self::Throughput, Self::CpuFree, Self::Energy];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::CpuFree => "cpu-free",
            Self::Energy => "energy",
        }
    }
}

impl Prefer {
    /// What it means, in a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Latency => "each is done as soon as can be",
            Self::Throughput => "all are done as soon as can be",
            Self::CpuFree => {
                "whoever takes the least of the processor's time, unless that is done more than 20 ms and 4 times its own time later"
            }
            Self::Energy => "whoever takes the least energy, unless that is done more than 20 ms and 4 times its own time later",
        }
    }
}

impl fmt::Display for Prefer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Prefer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|prefer| prefer.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("nothing to prefer is called '{name}'; there are {names}")
        })
    }
}

/// How long a request may wait for company where that is worth anything, unless told: 1 ms.
pub const WAIT_NS: u64 = 1_000_000;

/// What the mediator is told. Read from `mediator`, or `mediator:prefer=NAME,wait=TIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What counts.
    pub prefer: Prefer,
    /// How long a request may be kept back, beside an engine that is free, for others to go with it in one launch. Nobody is kept back where latency counts.
    pub wait_ns: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { prefer: Prefer::default(), wait_ns: WAIT_NS }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}:prefer={},wait={}ns", self.prefer, self.wait_ns)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        if name != NAME {
            return Err(format!("no '{NAME}' in '{text}'"));
        }
        let mut setting = Self::default();
        for part in parameters.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("prefer", value)) => setting.prefer = value.parse().map_err(|reason| format!("'{text}': {reason}"))?,
                Some(("wait", value)) => {
                    let wanted = || format!("'{text}': wait is '{value}', but must be a time above 0 such as 500us or 1ms");
                    setting.wait_ns = nanoseconds(value).ok_or_else(wanted)?;
                }
                _ => return Err(format!("'{text}': '{part}' is neither prefer=NAME nor wait=TIME")),
            }
        }
        Ok(setting)
    }
}

/// What there is, for people; a line for the policy and one for each parameter, as [`schedule::help`](crate::schedule::help).
pub fn help() -> String {
    format!(
        "{NAME:<14}a GPU beside the processor: small requests packed, large ones cut, the threshold learnt\n{:<14}  prefer=: what counts [latency]\n{}{:<14}  wait=: how long a request may wait to be packed, but for latency [{} ms]\n",
        "",
        Prefer::ALL.map(|prefer| format!("{:<18}{prefer}: {}\n", "", prefer.meaning())).concat(),
        "",
        WAIT_NS as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_told_again() {
        let setting = |text: &str| text.parse::<Setting>();
        assert_eq!(setting("mediator"), Ok(Setting::default()));
        let told = setting("mediator:prefer=cpu-free,wait=500us").unwrap();
        assert_eq!(told, Setting { prefer: Prefer::CpuFree, wait_ns: 500_000 });
        assert_eq!(setting(&told.to_string()), Ok(told));
        for (wrong, said) in [
            ("mediator:prefer=luck", "there are latency, throughput, cpu-free, energy"),
            ("mediator:wait=0ms", "such as 500us"),
            ("mediator:cut", "neither prefer=NAME nor wait=TIME"),
            ("placement", "no 'mediator'"),
        ] {
            assert!(setting(wrong).unwrap_err().contains(said), "{wrong}");
        }
    }
}
