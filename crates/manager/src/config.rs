//! What a manager is told when it is made.

use crate::reload::ReloadName;
use bywash_core::{CostSheet, Engine, Error, Result};
use bywash_policy::{EngineInfo, Policy, mediator};
use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Everything a manager is told. Start from [`ManagerConfig::new`] and change what differs.
#[derive(Clone)]
pub struct ManagerConfig {
    /// The engines, at most 64; see [`crate::probe`].
    pub engines: Vec<Arc<dyn Engine>>,
    /// Who decides.
    pub policy: PolicyKind,
    /// Who decides what the reconfigurable engine holds; [`ReloadName::default`] unless told. Told without such an engine it is an error.
    pub reload: Option<ReloadName>,
    /// Where the cost sheets come from.
    pub costs: Costs,
    /// How long an engine may work on a batch, above an allowance for its bytes, before its requests are given to another.
    pub stall_bound: Duration,
    /// How long a request may take altogether, queue and repetitions included, before it ends with [`Error::Timeout`].
    pub request_bound: Duration,
    /// Failures in a row that take an engine down.
    pub failures_max: u32,
    /// How long an engine stays down the first time; it doubles each time it fails again at once.
    pub probation: Duration,
}

impl ManagerConfig {
    /// The defaults for these engines: placement by cost, costs measured or taken from the cache.
    pub fn new(engines: Vec<Arc<dyn Engine>>) -> Self {
        Self {
            engines,
            policy: PolicyKind::Placement,
            reload: None,
            costs: Costs::Calibrate { cache: crate::calibrate::default_cache(), budget: crate::calibrate::BUDGET },
            stall_bound: Duration::from_secs(10),
            request_bound: Duration::from_secs(60),
            failures_max: 3,
            probation: Duration::from_secs(1),
        }
    }
}

/// Which policy decides.
#[derive(Clone, Debug)]
pub enum PolicyKind {
    /// First come, first served.
    Fifo,
    /// Shortest expected completion by cost sheets.
    Placement,
    /// One of [`bywash_policy::NAMES`], with its parameters: `exclusive:lease=20ms`.
    Named(String),
    /// One that is not in the house.
    Other(fn(&[EngineInfo]) -> Box<dyn Policy>),
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fifo => "fifo",
            Self::Placement => "placement",
            Self::Named(name) => name,
            Self::Other(_) => "other",
        })
    }
}

impl FromStr for PolicyKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "fifo" => Ok(Self::Fifo),
            "placement" => Ok(Self::Placement),
            _ if name.split(':').next() == Some(mediator::NAME) => match name.parse::<mediator::Setting>() {
                Ok(_) => Ok(Self::Named(name.to_owned())),
                Err(reason) => Err(Error::Config { place: "policy".into(), reason }),
            },
            _ => match bywash_policy::schedule::parse(name) {
                Ok(_) => Ok(Self::Named(name.to_owned())),
                Err(why) => {
                    let reason = format!(
                        "{why}\nfifo: oldest first\nplacement: shortest expected completion by cost\n{}{}",
                        mediator::help(),
                        bywash_policy::schedule::help()
                    );
                    Err(Error::Config { place: "policy".into(), reason })
                }
            },
        }
    }
}

/// Where cost sheets come from.
#[derive(Clone, Debug)]
pub enum Costs {
    /// From the cache of this machine, else measured when the manager is made, and cached.
    Calibrate {
        /// The folder; `None` measures every time.
        cache: Option<PathBuf>,
        /// Time for one engine's measurement.
        budget: Duration,
    },
    /// These, by the engines' names; an engine that is not among them uses its own sheet, or an empty one.
    Given(Vec<CostSheet>),
}
