//! Every test reads back what was generated, with the user's file included, as OpenSSL would.

use super::super::parse::{Source, parse};
use super::*;
use std::io;

const USER: &str = "/etc/ssl/openssl.cnf";

/// Serves the user's file to the `.include` of the generated one.
struct Only<'a>(&'a str);

impl Source for Only<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        if path == Path::new(USER) { Ok(self.0.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn list(&self, _: &Path) -> Option<Vec<PathBuf>> {
        None
    }

    fn env(&self, _: &str) -> Option<String> {
        None
    }
}

struct Outcome {
    conf: Conf,
    notes: Vec<String>,
}

impl Outcome {
    fn init(&self) -> &str {
        self.conf.get(DEFAULT_SECTION, "openssl_conf").expect("an initialisation section")
    }

    /// The entries of the section that this entry of the initialisation section names.
    fn behind(&self, name: &str) -> &[(String, String)] {
        self.conf.section(self.conf.get(self.init(), name).expect(name)).expect("a section")
    }

    fn providers(&self) -> Vec<&str> {
        self.behind("providers").iter().map(|(name, _)| name.as_str()).collect()
    }

    fn active(&self, name: &str) -> bool {
        let target = &self.behind("providers").iter().find(|(entry, _)| entry == name).expect(name).1;
        is_active(&self.conf, target)
    }

    fn query(&self) -> &str {
        &self.behind("alg_section").iter().find(|(name, _)| name == "default_properties").expect("a query").1
    }
}

fn ours() -> ProviderEntry {
    ProviderEntry { module: "/opt/b y/lib$x.so".into(), settings: vec![("socket", "/tmp/#s".into()), ("route", "auto".into())] }
}

fn with(text: &str) -> Outcome {
    let conf = parse(Path::new(USER), text, &Only(text)).expect("the user's file");
    let generated = generate(Some(&UserConf { path: USER.into(), conf }), &ours());
    let conf = parse(Path::new("/tmp/run.cnf"), &generated.text, &Only(text)).expect("the generated file");
    Outcome { conf, notes: generated.notes }
}

#[test]
fn no_file_at_all() {
    let generated = generate(None, &ours());
    assert!(!generated.text.contains(".include"));
    let conf = parse(Path::new("/tmp/run.cnf"), &generated.text, &Only("")).unwrap();
    let outcome = Outcome { conf, notes: generated.notes };
    assert_eq!(outcome.providers(), ["bywash", "default"]);
    assert!(outcome.active("bywash") && outcome.active("default"));
    assert_eq!(outcome.query(), "?provider=bywash");
    assert!(outcome.notes.is_empty());
}

#[test]
fn our_section_survives_odd_characters() {
    let outcome = with("");
    let get = |name| outcome.conf.get("bywash_provider", name).unwrap();
    assert_eq!((get("module"), get("socket"), get("route")), ("/opt/b y/lib$x.so", "/tmp/#s", "auto"));
}

#[test]
fn debians_file_without_providers_gets_default_activated() {
    let outcome = with("openssl_conf = openssl_init\n[openssl_init]\n[ req ]\ndefault_bits = 2048");
    assert_eq!((outcome.init(), outcome.providers()), ("openssl_init", vec!["bywash", "default"]));
    assert!(outcome.active("default"));
    assert_eq!(outcome.conf.get("req", "default_bits"), Some("2048"));
}

#[test]
fn a_file_without_initialisation_gets_one() {
    let outcome = with("[ req ]\ndefault_bits = 2048");
    assert_eq!(outcome.providers(), ["bywash", "default"]);
}

#[test]
fn the_stock_list_with_default_not_activated() {
    let outcome = with("openssl_conf = i\n[i]\nproviders = p\n[p]\ndefault = d\n[d]\n# activate = 1");
    assert_eq!(outcome.providers(), ["bywash", "default"]);
    assert!(outcome.active("default"));
}

#[test]
fn legacy_first_keeps_its_order_and_settings() {
    let outcome = with("openssl_conf = i\n[i]\nproviders = p\n[p]\nlegacy = l\ndefault = d\n[d]\nactivate = 1\n[l]\nactivate=1\nx=y");
    assert_eq!(outcome.providers(), ["bywash", "legacy", "default"]);
    assert!(outcome.active("legacy") && outcome.active("default"));
    assert_eq!(outcome.conf.get("l", "x"), Some("y"));
}

#[test]
fn default_under_another_name() {
    let outcome = with("openssl_conf = i\n[i]\nproviders = p\n[p]\nmain = d\n[d]\nidentity = default");
    assert_eq!(outcome.providers(), ["bywash", "main"]);
    assert!(outcome.active("main"));
}

#[test]
fn other_settings_of_the_initialisation_section_stay() {
    let outcome = with("openssl_conf = i\n[i]\nssl_conf = s\noid_section=o\n[s]\nsystem_default = t\n[t]\nMinProtocol = TLSv1.2\n[o]");
    assert_eq!(outcome.conf.get("i", "ssl_conf"), Some("s"));
    assert_eq!(outcome.conf.get("i", "oid_section"), Some("o"));
    assert_eq!(outcome.conf.get("t", "MinProtocol"), Some("TLSv1.2"));
}

#[test]
fn property_queries_are_joined() {
    let outcome = with("openssl_conf = i\n[i]\nalg_section = a\n[a]\nx = 1\ndefault_properties = ?output=der");
    assert_eq!(outcome.query(), "?output=der,?provider=bywash");
    assert_eq!(outcome.behind("alg_section").len(), 2, "the user's other entries stay");
    assert!(outcome.notes.is_empty());
}

#[test]
fn the_users_choice_of_provider_stands_and_is_said() {
    let outcome = with("openssl_conf = i\n[i]\nalg_section = a\n[a]\ndefault_properties = ?provider=legacy");
    assert_eq!(outcome.query(), "?provider=legacy");
    assert!(outcome.notes[0].contains("?provider=legacy"), "{:?}", outcome.notes);
}

#[test]
fn fips_is_kept_and_said() {
    let text = "openssl_conf = i\n[i]\nproviders = p\nalg_section = a\n[a]\ndefault_properties = fips=yes\n[p]\nfips = f\nbase = b\n[f]\nactivate = 1\n[b]\nactivate = 1";
    let outcome = with(text);
    assert_eq!(outcome.providers(), ["bywash", "fips", "base"], "default is not brought in by the back door");
    assert_eq!(outcome.query(), "fips=yes,?provider=bywash");
    assert!(outcome.notes.iter().any(|note| note.contains("FIPS")), "{:?}", outcome.notes);
    assert!(outcome.notes.iter().any(|note| note.contains("not 'default'")), "{:?}", outcome.notes);
}

#[test]
fn fips_mode_comes_after_the_query_it_adds_to() {
    let outcome = with("openssl_conf = i\n[i]\nalg_section = a\n[a]\nfips_mode = yes");
    let names: Vec<_> = outcome.behind("alg_section").iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["default_properties", "fips_mode"]);
}

#[test]
fn a_run_within_a_run_lists_us_once() {
    let first = generate(None, &ours()).text;
    let outcome = with(&first);
    assert_eq!(outcome.providers(), ["bywash", "default"]);
    assert_eq!(outcome.conf.get("bywash_provider", "socket"), Some("/tmp/#s"));
    let query = outcome.query();
    assert_eq!(query, "?provider=bywash");
    assert!(outcome.notes.is_empty(), "{:?}", outcome.notes);
}

#[test]
fn a_listed_provider_without_section_is_left_out_and_said() {
    let outcome = with("openssl_conf = i\n[i]\nproviders = p\n[p]\ndefault = d\nlost = nowhere\n[d]\nactivate = 1");
    assert_eq!(outcome.providers(), ["bywash", "default"]);
    assert!(outcome.notes[0].contains("lost") && outcome.notes[0].contains("nowhere"), "{:?}", outcome.notes);
}

#[test]
fn node_has_its_own_initialisation_section() {
    let outcome = with("nodejs_conf = n\n[n]\nproviders = p\n[p]\ndefault = d\nlegacy = l\n[d]\nactivate = 1\n[l]\nactivate = 1");
    let list = outcome.conf.get("n", "providers").unwrap();
    let names: Vec<_> = outcome.conf.section(list).unwrap().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bywash", "default", "legacy"]);
    assert_eq!(outcome.providers(), ["bywash", "default"]);
}
