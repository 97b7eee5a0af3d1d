//! OpenSSL: its version, its configuration, and whether it loads our provider.

use super::Finding;
use crate::failure::Failure;
use crate::openssl_conf::{ProviderEntry, generate, user_conf};
use crate::provider;
use crate::run::workspace::Workspace;
use std::path::Path;
use std::process::Command;

pub(super) fn look(named: Option<&Path>) -> Vec<Finding> {
    let mut findings = vec![version()];
    findings.extend(configuration());
    findings.push(match provider::find(named).and_then(|module| loads(&module)) {
        Ok(finding) => finding,
        Err(failure) => of_failure("provider", &failure),
    });
    findings
}

/// A failure's last line is the way out.
fn of_failure(about: &'static str, failure: &Failure) -> Finding {
    let (found, mend) = failure.message.rsplit_once('\n').unwrap_or((&failure.message, "see the message"));
    Finding::broken(about, found, mend)
}

fn version() -> Finding {
    let told = Command::new("openssl").arg("version").output();
    let text = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if text.is_empty() {
        return Finding::note("OpenSSL", "there is no openssl command to ask for the version", "apt-get install openssl");
    }
    judge_version(&text)
}

fn judge_version(text: &str) -> Finding {
    let version = text.strip_prefix("OpenSSL ").and_then(|rest| rest.split_whitespace().next());
    let major = version.and_then(|version| version.split('.').next()).and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(3..) => Finding::ok("OpenSSL", text),
        Some(_) => Finding::broken("OpenSSL", format!("{text} has no providers"), "install OpenSSL 3.0 or later"),
        None => Finding::broken("OpenSSL", format!("{text} is not OpenSSL"), "install OpenSSL 3.0 or later, first in PATH"),
    }
}

fn configuration() -> Vec<Finding> {
    match user_conf() {
        Err(failure) => vec![of_failure("configuration", &failure)],
        Ok(None) => vec![Finding::ok("configuration", "none; OpenSSL's defaults")],
        Ok(Some(user)) => {
            let entry = ProviderEntry { module: "unused".into(), settings: Vec::new() };
            let notes = generate(Some(&user), &entry).notes;
            let as_findings = |note: String| Finding::note("configuration", note, format!("edit {}", user.path.display()));
            let found = Finding::ok("configuration", user.path.display().to_string());
            core::iter::once(found).chain(notes.into_iter().map(as_findings)).collect()
        }
    }
}

/// Really loads it, as `bywash run` would have it loaded.
fn loads(module: &Path) -> Result<Finding, Failure> {
    let entry = ProviderEntry { module: module.to_owned(), settings: Vec::new() };
    let workspace = Workspace::new()?;
    let conf = workspace.write_conf(&generate(user_conf()?.as_ref(), &entry).text)?;
    let output = Command::new("openssl").args(["list", "-providers"]).env("OPENSSL_CONF", conf).env("BYWASH_SOCKET", "none").output();
    let output = output.map_err(|error| Failure::failed(format!("cannot run openssl: {error}\napt-get install openssl")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && is_active(&said) {
        return Ok(Finding::ok("provider", format!("loads: {}", module.display())));
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let found = format!("{} does not load\n{}", module.display(), errors.lines().take(4).collect::<Vec<_>>().join("\n"));
    let mend = format!("see what it needs: ldd {}", module.display());
    Ok(Finding::broken("provider", found.trim_end(), mend))
}

/// Whether the listing has `bywash` with `status: active`, as `openssl list -providers` prints it.
fn is_active(listing: &str) -> bool {
    let ours = listing.lines().skip_while(|line| line.trim() != crate::openssl_conf::generate::NAME).skip(1);
    // Until the next provider's name, which is indented by two.
    let mut block = ours.take_while(|line| line.starts_with("    "));
    block.any(|line| line.trim() == "status: active")
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn versions_before_three_and_other_libraries_are_refused() {
        assert_eq!(judge_version("OpenSSL 3.0.22 25 Aug 2026 (Library: OpenSSL 3.0.22)").level, Level::Ok);
        assert_eq!(judge_version("OpenSSL 4.0.1 1 Jan 2027").level, Level::Ok);
        let old = judge_version("OpenSSL 1.1.1w  11 Sep 2023");
        assert_eq!(old.level, Level::Broken);
        assert!(old.mend.unwrap().contains("3.0"));
        assert_eq!(judge_version("LibreSSL 4.0.0").level, Level::Broken);
    }

    #[test]
    fn only_an_active_provider_of_our_name_counts() {
        let listing = "Providers:\n  bywash\n    name: Bywash\n    status: active\n  default\n    status: active\n";
        assert!(is_active(listing));
        assert!(!is_active("Providers:\n  bywash\n    status: inactive\n  default\n    status: active\n"));
        assert!(!is_active("Providers:\n  default\n    status: active\n"));
    }
}
