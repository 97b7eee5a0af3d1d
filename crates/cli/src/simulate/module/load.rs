//! Programs that are described, in TOML.

use super::report::Tenants;
use super::{Module, Source};
use crate::failure::Failure;
use crate::terminal::thousands;
use crate::texts;
use bywash_broker::TenantRule;
use bywash_core::trace::Whose;
use bywash_core::{Algorithm, Direction, Time};
use bywash_policy::Tenant;
use bywash_sim::asked::{Asked, When};
use bywash_sim::module::{Client, Traffic};
use serde::Deserialize;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// Loads that come along.
const SHIPPED: [(&str, &str); 2] = [("mixed", include_str!("loads/mixed.toml")), ("processes", include_str!("loads/processes.toml"))];
/// Of the intervals of programs that ask at random.
const SEED: u64 = 1;
/// More requests are refused, and more programs, which need not ask for anything: a run keeps some 200 bytes of each.
const REQUESTS_MAX: u64 = 20_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    /// How long programs ask that have no number of operations.
    #[serde(default = "ten")]
    seconds: f64,
    client: Vec<Program>,
}

/// So many programs of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    program: String,
    #[serde(default)]
    uid: u32,
    #[serde(default)]
    gid: u32,
    #[serde(default = "one")]
    count: NonZeroU32,
    algorithm: String,
    bytes: u64,
    #[serde(default)]
    decrypt: bool,
    /// Waits for its results: how many operations, how many of them at a time, how long it works in between.
    operations: Option<NonZeroU32>,
    #[serde(default = "one")]
    depth: NonZeroU32,
    #[serde(default, with = "humantime_text")]
    think: Duration,
    /// Or asks whether or not it has had them: how often on average.
    #[serde(default, with = "humantime_text")]
    every: Duration,
    #[serde(default, with = "humantime_text")]
    start: Duration,
    /// What it is promised where no tenant's rule speaks of it.
    #[serde(default = "one")]
    weight: NonZeroU32,
    #[serde(default, with = "humantime_text")]
    goal: Duration,
}

fn ten() -> f64 {
    10.0
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Times with their units.
mod humantime_text {
    use serde::{Deserialize, Deserializer, de::Error};
    use std::time::Duration;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        humantime::parse_duration(&text).map_err(|_| D::Error::custom(format!("'{text}' is no time; write 500us, 1ms or 2s")))
    }
}

pub(super) fn source(name: &str, module: &Module, rules: Option<&[TenantRule]>) -> Result<Source, Failure> {
    let text = match SHIPPED.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => (*text).to_owned(),
        None => texts::whole(Path::new(name)).map_err(|failure| {
            let message = format!("{failure}; loads that come along: mixed, processes");
            failure.saying(message)
        })?,
    };
    let load: Load = toml::from_str(&text).map_err(|error| Failure::config(format!("{name}: {error}")))?;
    let (mut traffic, mut tenants) = (Traffic::default(), Tenants::of(rules));
    for program in &load.client {
        add(program, load.seconds, module, &mut traffic, &mut tenants)
            .map_err(|reason| Failure::config(format!("{name}: program '{}': {reason}", program.program)))?;
    }
    if traffic.requests.is_empty() {
        return Err(Failure::config(format!("{name}: its programs ask for nothing; lengthen `seconds`, or give `operations`")));
    }
    let told = vec![format!(
        "{name}: {} requests of {} programs that are described, not recorded",
        thousands(traffic.requests.len() as u64),
        traffic.clients.len()
    )];
    Ok(Source { traffic, tenants, told, live: None })
}

fn add(program: &Program, seconds: f64, module: &Module, traffic: &mut Traffic, tenants: &mut Tenants) -> Result<(), String> {
    let algorithm: Algorithm = program.algorithm.parse().map_err(|error: bywash_core::Error| error.to_string())?;
    if !module.computes(algorithm) {
        return Err(format!("'{}' does not compute {algorithm}", module.name));
    }
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let whose = Whose { pid: 0, uid: program.uid, gids: vec![program.gid], program: program.program.clone() };
    let promised = Tenant { weight: program.weight.get(), goal_ns: Some(ns(program.goal)).filter(|&goal| goal > 0) };
    let (group, tenant) = tenants.find(Some(&whose), promised);
    let client = Client { tenant, group };
    let direction = if program.decrypt { Direction::Decrypt } else { Direction::Encrypt };
    let start = Time(ns(program.start));
    let asked = Asked { when: When::At(start), client: 0, session: 0, algorithm, direction, bytes: program.bytes };
    let every_ns = ns(program.every);
    if program.operations.is_some() == (every_ns > 0) {
        return Err("it needs either `operations`, to wait for its results, or `every`, to ask at intervals".to_owned());
    }
    if traffic.clients.len() as u64 + u64::from(program.count.get()) > REQUESTS_MAX {
        return Err(format!("more than {} programs in all", thousands(REQUESTS_MAX)));
    }
    for _ in 0..program.count.get() {
        let expected = program.operations.map_or_else(|| seconds * 1e9 / every_ns as f64, |operations| f64::from(operations.get()));
        let all = expected + traffic.requests.len() as f64;
        if all.is_nan() || all > REQUESTS_MAX as f64 {
            return Err(format!("more than {} requests in all", thousands(REQUESTS_MAX)));
        }
        match program.operations {
            Some(operations) => traffic.closed(client, asked, operations.get(), program.depth.get(), ns(program.think)),
            None => {
                let seed = SEED + traffic.clients.len() as u64;
                traffic.open(client, asked, every_ns, start + (seconds * 1e9) as u64, seed);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_come_along_are_understood() {
        let module = super::super::module("ixp425").unwrap();
        for (name, _) in SHIPPED {
            let source = source(name, &module, None).unwrap();
            assert!(source.traffic.requests.len() > 10_000, "{name}");
        }
        let mixed = source("mixed", &module, None).unwrap();
        assert_eq!(mixed.traffic.clients.iter().filter(|client| client.tenant.goal_ns == Some(1_000_000)).count(), 12);
    }

    #[test]
    fn a_tenants_rule_goes_before_what_a_load_promises() {
        let module = super::super::module("ixp425").unwrap();
        let rule = TenantRule { matches: "program:soon".parse().unwrap(), tenant: Tenant { weight: 7, goal_ns: None } };
        let mixed = source("mixed", &module, Some(&[rule])).unwrap();
        assert_eq!(mixed.traffic.clients.iter().filter(|client| client.tenant == Tenant { weight: 7, goal_ns: None }).count(), 12);
    }

    #[test]
    fn what_is_wrong_with_a_load_is_said() {
        let module = super::super::module("ixp425").unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            source(file.path().to_str().unwrap(), &module, None).err().unwrap().to_string()
        };
        let program = "[[client]]\nprogram = \"a\"\nbytes = 16\n";
        assert!(error(&format!("{program}algorithm = \"AES-256-GCM\"\noperations = 1\n")).contains("does not compute"));
        assert!(error(&format!("{program}algorithm = \"AES-128-CBC\"\n")).contains("either `operations`"));
        assert!(error(&format!("{program}algorithm = \"AES-128-CBC\"\nevery = \"1\"\n")).contains("is no time"));
        assert!(error(&format!("{program}algorithm = \"AES-128-CBC\"\nevery = \"1ns\"\n")).contains("requests in all"));
        let silent = format!("seconds = 0.0\n{program}algorithm = \"AES-128-CBC\"\nevery = \"1s\"\n");
        assert!(error(&format!("{silent}count = 4294967295\n")).contains("more than 20,000,000 programs in all"));
        assert!(error(&format!("{silent}count = 2\n")).contains("ask for nothing"));
    }
}
