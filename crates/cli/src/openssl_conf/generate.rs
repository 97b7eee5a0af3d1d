//! From the user's configuration to the one of a run: a pure function.

use super::find::UserConf;
use super::parse::{Conf, DEFAULT_SECTION};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The name under which our provider is listed.
pub(crate) const NAME: &str = "bywash";

/// The query by which a fetch takes our implementation where there is one.
const OUR_QUERY: &str = "?provider=bywash";

/// The query by which random generators fetch their ciphers. Their state is a key that has no business outside OpenSSL.
const RANDOM_QUERY: &str = "?provider=default";

/// The entries of the default section that name an initialisation section: OpenSSL's own, and Node.js's.
const APPLICATIONS: [&str; 2] = ["openssl_conf", "nodejs_conf"];

/// Our provider's own section.
#[derive(Clone, Debug)]
pub(crate) struct ProviderEntry {
    /// The shared object.
    pub(crate) module: PathBuf,
    /// What it is told: `socket`, `route`, `run`. Written here as well as into the environment, which servers clear for their workers.
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// A configuration for a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Generated {
    /// The file's text.
    pub(crate) text: String,
    /// What the user should know: where their configuration stands in the way of routing.
    pub(crate) notes: Vec<String>,
}

/// Puts our provider first, keeps all else.
pub(crate) fn generate(user: Option<&UserConf>, provider: &ProviderEntry) -> Generated {
    let empty = Conf::default();
    let conf = user.map_or(&empty, |user| &user.conf);
    let mut out = Generated { text: "# Written by `bywash run`; removed when the run ends.\n".to_owned(), notes: Vec::new() };
    if let Some(user) = user {
        line(&mut out, &format!(".include {}", quote_path(&user.path)));
    }
    section(&mut out, &provider_section(), &provider_entries(provider));
    for application in APPLICATIONS {
        let named = conf.get(DEFAULT_SECTION, application);
        if named.is_some() || application == APPLICATIONS[0] {
            initialisation(&mut out, conf, application, named);
        }
    }
    out
}

fn initialisation(out: &mut Generated, conf: &Conf, application: &str, named: Option<&str>) {
    let own = format!("bywash_{application}");
    let init = named.unwrap_or(&own);
    let users = |key| conf.get(init, key).unwrap_or_default();
    let providers = format!("bywash_providers_{application}");
    let properties = format!("bywash_properties_{application}");
    let own_random = format!("bywash_random_{application}");
    let random = conf.get(init, "random").unwrap_or(&own_random);
    let listed = providers_of(out, conf, users("providers"));
    let fetched = properties_of(out, conf, users("alg_section"));

    section(out, DEFAULT_SECTION, &[entry(application, init)]);
    section(out, init, &[entry("providers", &providers), entry("alg_section", &properties), entry("random", random)]);
    section(out, &providers, &listed);
    section(out, &properties, &fetched);
    if conf.get(random, "properties").is_none() {
        section(out, random, &[entry("properties", RANDOM_QUERY)]);
    }
}

/// Ours, then the user's in their order. OpenSSL loads its default provider of itself only while no other is activated; so where the
/// user's list relied on that, it is activated in so many words.
fn providers_of(out: &mut Generated, conf: &Conf, list: &str) -> Vec<(String, String)> {
    let mut listed = vec![entry(NAME, &provider_section())];
    let (mut has_default, mut any_active) = (false, false);
    for (name, target) in conf.section(list).unwrap_or_default() {
        if conf.section(target).is_none() {
            out.notes.push(format!("your openssl.cnf lists provider '{name}' in section [{target}], which it does not have: left out"));
            continue;
        }
        let identity = conf.get(target, "identity").unwrap_or(name);
        if identity == NAME {
            continue;
        }
        let active = is_active(conf, target);
        any_active |= active;
        if identity == "default" {
            has_default = true;
            if !active {
                section(out, target, &[entry("activate", "1")]);
            }
        }
        listed.push(entry(name, target));
    }
    if !has_default && !any_active {
        section(out, "bywash_default", &[entry("activate", "1")]);
        listed.push(entry("default", "bywash_default"));
    } else if !has_default {
        out.notes.push("your openssl.cnf activates providers, but not 'default': it stays inactive".to_owned());
    }
    listed
}

/// OpenSSL 3.0 takes the entry's presence for yes; later ones read its value.
fn is_active(conf: &Conf, section: &str) -> bool {
    let off = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "0" | "no" | "false" | "off");
    conf.get(section, "activate").is_some_and(|value| !off(value))
}

/// The user's property query and ours joined; OpenSSL refuses a query that names a property twice.
fn properties_of(out: &mut Generated, conf: &Conf, list: &str) -> Vec<(String, String)> {
    let users = conf.section(list).unwrap_or_default();
    let query = users.iter().find(|(name, _)| name == "default_properties").map_or("", |(_, value)| value.trim());
    let names_provider = query.split(',').any(|term| term.trim_start_matches(['?', '-', ' ']).starts_with("provider"));
    let is_ours = query.split(',').any(|term| term.trim() == OUR_QUERY);
    if names_provider && !is_ours {
        out.notes.push(format!("your openssl.cnf prefers a provider (default_properties = {query}): that preference stands"));
    }
    if query.contains("fips") || users.iter().any(|(name, value)| name == "fips_mode" && value != "no" && value != "off") {
        out.notes.push("your openssl.cnf asks for FIPS-approved algorithms only, so nothing will be routed".to_owned());
    }
    let joined = match query {
        "" => OUR_QUERY.to_owned(),
        _ if names_provider => query.to_owned(),
        _ => format!("{query},{OUR_QUERY}"),
    };
    let others = users.iter().filter(|(name, _)| name != "default_properties");
    // Ours comes first: `fips_mode` adds to a query that is there, `default_properties` replaces it.
    core::iter::once(entry("default_properties", &joined)).chain(others.cloned()).collect()
}

fn provider_section() -> String {
    "bywash_provider".to_owned()
}

fn provider_entries(provider: &ProviderEntry) -> Vec<(String, String)> {
    let module = entry("module", &provider.module.to_string_lossy());
    let settings = provider.settings.iter().map(|(name, value)| entry(name, value));
    [module, entry("activate", "1")].into_iter().chain(settings).collect()
}

fn entry(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn section(out: &mut Generated, name: &str, entries: &[(String, String)]) {
    line(out, &format!("\n[ {name} ]"));
    for (name, value) in entries {
        line(out, &format!("{name} = {}", escape(value)));
    }
}

fn line(out: &mut Generated, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out.text, "{text}");
}

fn quote_path(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// Escapes what OpenSSL would read as more than itself.
fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' | '#' | '$' | '"' | '\'' | '`' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
