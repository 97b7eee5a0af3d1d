//! The doctor on real material, good and bad.

use super::*;
use bywash_dds_material::{Governance, Material};
use std::path::Path;
use std::process::Command;

fn findings(config: &Path) -> Vec<Finding> {
    look(&config::read(config).unwrap()).unwrap()
}

fn said(findings: &[Finding], level: Level) -> String {
    findings.iter().filter(|finding| finding.level == level).map(|finding| format!("{}: {}\n", finding.about, finding.found)).collect()
}

#[test]
fn all_three_kinds_of_configuration_are_read_and_nothing_is_broken() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let cyclone = alice.cyclone(None).unwrap();
    for config in [Path::new(cyclone.trim_start_matches("file://")), &alice.fastdds().unwrap(), alice.folder()] {
        let findings = findings(config);
        assert_eq!(said(&findings, Level::Broken), "", "{}", config.display());
        assert!(said(&findings, Level::Ok).contains("CN=alice") && said(&findings, Level::Ok).contains("encrypts whole messages"));
    }
}

#[test]
fn a_governance_that_encrypts_three_times_is_named() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::ALL).unwrap().participant("alice").unwrap();
    assert!(said(&findings(alice.folder()), Level::Note).contains("three times"));
}

#[test]
fn a_permissions_ca_that_fast_dds_refuses_and_one_that_ends_are_named() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::DATA).unwrap().participant("alice").unwrap();
    let made = |days: &str, usage: &str, file: &str| {
        let extension = format!("keyUsage=critical,{usage}");
        let arguments =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-subj", "/CN=CA", "-days", days];
        let mut command = Command::new("openssl");
        command.current_dir(alice.folder()).args(arguments);
        let output = command.args(["-addext", &extension, "-keyout", "/dev/null", "-out", file]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    made("100", "keyCertSign", "permissions_ca.cert.pem");
    made("3", "keyCertSign,digitalSignature", "identity_ca.cert.pem");
    let findings = findings(alice.folder());
    assert!(said(&findings, Level::Broken).contains("Fast DDS will refuse"));
    assert!(said(&findings, Level::Note).contains("identity CA") && said(&findings, Level::Note).contains("expires in"));
}

#[test]
fn what_is_missing_or_no_certificate_is_broken() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::DATA).unwrap().participant("alice").unwrap();
    std::fs::remove_file(alice.folder().join("key.pem")).unwrap();
    std::fs::write(alice.folder().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::copy(place.path().join("governance.xml"), alice.folder().join("governance.p7s")).unwrap();
    let broken = said(&findings(alice.folder()), Level::Broken);
    for about in ["private key", "identity", "governance"] {
        assert!(broken.contains(about), "{about}: {broken}");
    }
    assert!(broken.contains("not signed"), "{broken}");
}

#[test]
fn hostile_input_is_refused_and_not_expanded() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("x.xml");
    let laughs = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><CycloneDDS>&b;</CycloneDDS>";
    let deep = format!("<dds>{}", "<a>".repeat(100_000));
    for text in [laughs, &deep, "", "\0\0", "<html/>", "<CycloneDDS/>", "<dds/>"] {
        std::fs::write(&file, text).unwrap();
        assert!(config::read(&file).is_err(), "{}", &text[..text.len().min(60)]);
    }
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(config::read(&file).is_err());
}
