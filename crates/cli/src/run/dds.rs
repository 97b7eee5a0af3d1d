//! What the preload library for Fast DDS had ready, said in one line at the run's end.

use super::Plan;
use super::workspace::Workspace;
use crate::doctor;
use crate::failure::Failure;
use crate::terminal::thousands;
use bywash_dds::{Made, Reuse};
use std::fs;
use std::path::{Path, PathBuf};

/// What the libraries are called that Fast DDS is in: those of its releases 2 and 3.
const LIBRARIES: [&str; 2] = ["libfastrtps.so", "libfastdds.so"];
/// What Cyclone DDS's library is called.
const CYCLONE: &str = "libddsc.so";

/// Whether the library is to be loaded: it was asked for, or the program itself is linked to Fast DDS.
pub(super) fn is_wanted(plan: &Plan) -> bool {
    plan.dds || plan.command.first().is_some_and(|program| LIBRARIES.iter().any(|library| doctor::needs(program, library)))
}

/// Makes the file that the run's processes count in.
pub(super) fn begin(workspace: &Workspace) -> Result<PathBuf, Failure> {
    workspace.write("dds-counts", &[0; Reuse::BYTES])
}

/// What they have counted.
pub(super) fn read(path: &Path) -> Option<Reuse> {
    Reuse::from_bytes(&fs::read(path).ok()?)
}

/// What the environment asks of the library (`BYWASH_DDS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Nothing, or what the library does not know, and says so itself.
    On,
    Plain,
    Off,
}

impl Setting {
    /// What it is for the run's program.
    pub(super) fn of_environment() -> Self {
        match std::env::var("BYWASH_DDS").as_deref() {
            Ok("plain") => Self::Plain,
            Ok("off") => Self::Off,
            _ => Self::On,
        }
    }
}

/// Why nobody was reached.
fn unreached(plan: &Plan, setting: Setting) -> String {
    let program = plan.command.first();
    let command = program.map(|word| word.to_string_lossy()).unwrap_or_default();
    if setting == Setting::Off {
        return "Fast DDS was left alone, as BYWASH_DDS=off asks".into();
    }
    if program.is_some_and(|program| doctor::needs(program, CYCLONE)) {
        return format!(
            "{command} is on Cyclone DDS, which --dds does not reach: its configuration names the plug-in libbywash_dds_cyclone.so; see `bywash doctor -- {command}`"
        );
    }
    format!(
        "Fast DDS was not reached: no process loaded it ({}), or its security is not enabled; see `bywash doctor -- {command}`",
        LIBRARIES.join(", ")
    )
}

/// The line, without the `bywash: ` before it; none for a run that was not asked to reach Fast DDS and did not.
pub(super) fn summary(reuse: &Reuse, plan: &Plan, setting: Setting) -> Option<String> {
    if reuse.processes == 0 {
        return (plan.dds || setting == Setting::Off).then(|| unreached(plan, setting));
    }
    if setting == Setting::Plain {
        return Some("Fast DDS's calls passed through to OpenSSL, as BYWASH_DDS=plain asks".into());
    }
    let all = [reuse.keys, reuse.contexts, reuse.randoms];
    if all.iter().all(|made| made.total() == 0) {
        return Some("Fast DDS protected no message: its security is not enabled, or it met nobody".into());
    }
    let [keys, contexts, randoms] = all.map(ready);
    let libcrypto = all.iter().fold(0, |sum: u64, made| sum.saturating_add(made.libcrypto));
    Some(format!(
        "Fast DDS found ready: {keys} session keys, {contexts} cipher contexts, {randoms} random draws; made by OpenSSL: {}",
        thousands(libcrypto)
    ))
}

fn ready(made: Made) -> String {
    format!("{} of {}", thousands(made.ready), thousands(made.total()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(dds: bool) -> Plan {
        Plan { dds, command: vec!["talker".into()], ..Plan::default() }
    }

    #[test]
    fn what_was_ready_and_what_openssl_made() {
        let made = |ready, anew, libcrypto| Made { ready, anew, libcrypto };
        let reuse = Reuse { processes: 1, keys: made(4980, 30, 2), contexts: made(9990, 10, 0), randoms: made(5000, 0, 6) };
        let text = summary(&reuse, &plan(true), Setting::On).unwrap();
        let expected = "Fast DDS found ready: 4,980 of 5,012 session keys, 9,990 of 10,000 cipher contexts, 5,000 of 5,006 random draws; made by OpenSSL: 8";
        assert_eq!(text, expected);
        assert_eq!(summary(&reuse, &plan(false), Setting::On).as_deref(), Some(expected));
        assert!(summary(&reuse, &plan(true), Setting::Plain).unwrap().contains("BYWASH_DDS=plain"));
    }

    #[test]
    fn that_nobody_was_reached_is_told_who_asked() {
        let text = summary(&Reuse::default(), &plan(true), Setting::On).unwrap();
        assert!(text.starts_with("Fast DDS was not reached") && text.contains("bywash doctor -- talker"), "{text}");
        assert_eq!(summary(&Reuse::default(), &plan(false), Setting::On), None);
        assert!(summary(&Reuse::default(), &plan(true), Setting::Off).unwrap().contains("BYWASH_DDS=off"));
        let idle = Reuse { processes: 1, ..Reuse::default() };
        assert!(summary(&idle, &plan(true), Setting::On).unwrap().contains("protected no message"));
    }

    #[test]
    fn the_file_is_there_from_the_beginning() {
        let workspace = Workspace::new().unwrap();
        assert_eq!(read(&begin(&workspace).unwrap()), Some(Reuse::default()));
    }
}
