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

/// The line, without the `bywash: ` before it; none for a run that was not asked to reach Fast DDS and did not.
pub(super) fn summary(reuse: &Reuse, plan: &Plan) -> Option<String> {
    if reuse.processes == 0 {
        let command = plan.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        return plan.dds.then(|| {
            format!(
                "Fast DDS was not reached: no process of this run loaded it ({}), or none derived a key because security is not enabled; see \
                 `bywash doctor -- {command}`",
                LIBRARIES.join(", ")
            )
        });
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
        let text = summary(&reuse, &plan(true)).unwrap();
        let expected = "Fast DDS found ready: 4,980 of 5,012 session keys, 9,990 of 10,000 cipher contexts, 5,000 of 5,006 random draws; made by OpenSSL: 8";
        assert_eq!(text, expected);
        assert_eq!(summary(&reuse, &plan(false)).as_deref(), Some(expected));
    }

    #[test]
    fn that_nobody_was_reached_is_told_who_asked() {
        let text = summary(&Reuse::default(), &plan(true)).unwrap();
        assert!(text.starts_with("Fast DDS was not reached") && text.contains("bywash doctor -- talker"), "{text}");
        assert_eq!(summary(&Reuse::default(), &plan(false)), None);
        let idle = Reuse { processes: 1, ..Reuse::default() };
        assert!(summary(&idle, &plan(true)).unwrap().contains("protected no message"));
    }

    #[test]
    fn the_file_is_there_from_the_beginning() {
        let workspace = Workspace::new().unwrap();
        assert_eq!(read(&begin(&workspace).unwrap()), Some(Reuse::default()));
    }
}
