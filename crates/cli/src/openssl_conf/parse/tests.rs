//! The shapes that configuration files come in.

use super::*;

struct Table(&'static [(&'static str, &'static str)]);

impl Source for Table {
    fn read(&self, path: &Path) -> io::Result<String> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, path: &Path) -> Option<Vec<PathBuf>> {
        let within: Vec<_> = self.0.iter().map(|(name, _)| PathBuf::from(name)).filter(|name| name.parent() == Some(path)).collect();
        (!within.is_empty()).then_some(within)
    }

    fn env(&self, name: &str) -> Option<String> {
        (name == "HOME").then(|| "/home/ada".to_owned())
    }
}

fn read(text: &str) -> Result<Conf, ParseError> {
    const FILES: Table = Table(&[
        ("/etc/more.cnf", "inside = 1\n[ more ]\nx = 2\n"),
        ("/etc/folder/a.cnf", "a = 1\n"),
        ("/etc/folder/b.cnf", "b = $a$a\n"),
        ("/etc/loop.cnf", ".include /etc/loop.cnf\n"),
    ]);
    parse(Path::new("/etc/test.cnf"), text, &FILES)
}

fn value(text: &str, section: &str, name: &str) -> Option<String> {
    read(text).unwrap().get(section, name).map(str::to_owned)
}

#[test]
fn sections_reopen_and_later_entries_replace_earlier_ones_and_move_to_the_end() {
    let conf = read("openssl_conf=one\n[ one ]\na = 1\nb = 2\n[two]\n[one]\na=3\ndefault::openssl_conf = two").unwrap();
    assert_eq!(conf.section("one").unwrap(), [("b".into(), "2".into()), ("a".into(), "3".into())]);
    assert_eq!(conf.section("two").unwrap(), []);
    assert_eq!(conf.section("three"), None);
    assert_eq!(conf.get(DEFAULT_SECTION, "openssl_conf"), Some("two"));
}

#[test]
fn comments_quotes_escapes_and_continued_lines() {
    assert_eq!(value("a = 1 # one\n# a = 2\n", "default", "a").unwrap(), "1");
    assert_eq!(value("a = \"x # y\" # z", "default", "a").unwrap(), "x # y");
    assert_eq!(value("a = x\\#y\\\\z\\t|", "default", "a").unwrap(), "x#y\\z\t|");
    assert_eq!(value("a = one \\\ntwo\nb = 3", "default", "a").unwrap(), "one two");
    assert_eq!(value("a = C:\\\\\nb = 3", "default", "b").unwrap(), "3");
    assert_eq!(value("a =", "default", "a").unwrap(), "");
}

#[test]
fn variables_of_this_section_another_the_default_and_the_environment() {
    let text = "d = D\n[s]\nv = S\n[t]\nv = T\none = $v\ntwo = ${s::v}\nthree = $(d)x\nfour = $ENV::HOME/.rnd\nfive=$s::v";
    let conf = read(text).unwrap();
    let all: Vec<_> = ["one", "two", "three", "four", "five"].iter().map(|name| conf.get("t", name).unwrap()).collect();
    assert_eq!(all, ["T", "S", "Dx", "/home/ada/.rnd", "S"]);
    assert_eq!(value(".pragma dollarid:on\na = x$y\nb = ${a}", "default", "b").unwrap(), "x$y");
}

#[test]
fn includes_of_files_folders_and_nothing() {
    let conf = read("[s]\n.include /etc/more.cnf\ny = 3").unwrap();
    assert_eq!((conf.get("s", "inside"), conf.get("more", "x"), conf.get("more", "y")), (Some("1"), Some("2"), Some("3")));
    assert_eq!(value(".include = /etc/folder", "default", "b").unwrap(), "11");
    assert_eq!(value(".include /not/there\na = 1", "default", "a").unwrap(), "1");
    assert_eq!(value(".pragma includedir:/etc\n.include more.cnf", "more", "x").unwrap(), "2");
}

#[test]
fn what_openssl_refuses_is_refused_with_file_and_line() {
    let error = |text| read(text).unwrap_err().to_string();
    assert_eq!(error("a = 1\nb = $nowhere"), "/etc/test.cnf, line 2: variable default::nowhere has no value");
    assert_eq!(error("[ open"), "/etc/test.cnf, line 1: no closing ']'");
    assert_eq!(error("a = 1 \\\n2\nwords"), "/etc/test.cnf, line 3: no '=' between name and value");
    assert_eq!(error("a = 1\nb = ${a"), "/etc/test.cnf, line 2: no closing '}' after variable a");
    assert!(error(".include /etc/loop.cnf").contains("include each other"));
}

#[test]
fn no_file_makes_reading_or_writing_panic() {
    use crate::openssl_conf::find::UserConf;
    use crate::openssl_conf::generate::{ProviderEntry, generate};
    use bywash_fuzz_targets::runner;

    let seeds = [
        "openssl_conf = i\n[i]\nproviders = p\nalg_section = a\n[p]\ndefault = d\n[d]\nactivate = 1\n[a]\ndefault_properties = fips=yes\n",
        ".include /etc/more.cnf\n.pragma dollarid:on\na = \"x # y\" 'z' \\\nb = $ENV::HOME ${d::e}$(f)\n[ s ]\nd::x = 1\n",
    ];
    let target = |bytes: &[u8]| {
        let Ok(conf) = read(&String::from_utf8_lossy(bytes)) else { return };
        let provider = ProviderEntry { module: "/usr/lib/bywash.so".into(), settings: vec![("route", "auto".to_owned())] };
        let generated = generate(Some(&UserConf { path: "/etc/test.cnf".into(), conf }), &provider);
        assert!(generated.text.contains("module = /usr/lib/bywash.so"));
    };
    let seed = runner::seed_from_env();
    println!("openssl.cnf: BYWASH_SEED={seed}");
    let crash = runner::run(target, &seeds.map(|text| text.as_bytes().to_vec()), 20_000, seed).err();
    assert!(crash.is_none(), "BYWASH_SEED={seed}: {crash:?}");
}
