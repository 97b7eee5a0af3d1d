//! The doctor on real material, good and bad.

use super::*;
use bywash_dds_material::{Governance, Material};
use std::path::Path;
use std::process::Command;

fn findings(config: &Path) -> Vec<Finding> {
    look_at(&[config.to_owned()]).0
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
    assert!(said(&findings, Level::Broken).contains("Cyclone DDS, and Fast DDS before 2.10, will refuse"));
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
    assert_eq!(broken.matches("governance: ").count(), 1, "said once: {broken}");
    std::fs::remove_file(alice.folder().join("permissions.p7s")).unwrap();
    let found = findings(alice.folder());
    let permissions = found.iter().find(|finding| finding.about == "permissions").unwrap();
    assert!(permissions.found.contains("No such file") && !permissions.mend.as_ref().unwrap().contains("anew"), "{permissions:?}");
}

#[test]
fn what_nothing_protects_is_named() {
    let place = tempfile::tempdir().unwrap();
    let noted = |governance: Governance| {
        let alice = Material::make(&place.path().join(governance.name), governance).unwrap().participant("alice").unwrap();
        said(&findings(alice.folder()), Level::Note)
    };
    assert!(noted(Governance::OFF).contains("neither signs nor encrypts messages of topic *"));
    for governance in [Governance::DATA, Governance::RTPS, Governance::ROS2] {
        assert!(!noted(governance).contains("neither signs"), "{}", governance.name);
    }
}

#[test]
fn two_are_compared() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(&place.path().join("ours"), Governance::RTPS).unwrap();
    let [alice, bob] = ["alice", "bob"].map(|name| material.participant(name).unwrap().folder().to_owned());
    let stranger = Material::make(&place.path().join("theirs"), Governance::ROS2).unwrap().participant("carol").unwrap();
    let meeting = |one: &Path, other: &Path| {
        let findings = look_at(&[one.to_owned(), other.to_owned()]).0;
        findings.into_iter().filter(|finding| finding.about == "meeting").collect::<Vec<_>>()
    };
    assert!(said(&meeting(&alice, &bob), Level::Ok).contains("each verifies the other"));
    let broken = said(&meeting(&alice, stranger.folder()), Level::Broken);
    assert_eq!(broken.matches("not signed by").count(), 4, "{broken}");
    assert!(broken.contains("rtps_protection_kind is ENCRYPT here and SIGN there"), "{broken}");
    // Cyclone's words and a folder's are compared alike.
    let cyclone = material.participant("dave").unwrap().cyclone(None).unwrap();
    assert_eq!(said(&meeting(Path::new(&cyclone), &bob), Level::Broken), "");
}

#[test]
fn a_governance_that_says_the_same_otherwise_is_the_same() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(place.path(), Governance::RTPS).unwrap();
    let [alice, bob] = ["alice", "bob"].map(|name| material.participant(name).unwrap().folder().to_owned());
    let text = std::fs::read_to_string(bob.join("governance.p7s")).unwrap();
    let compared = |from: &str, to: &str| {
        std::fs::write(bob.join("governance.p7s"), text.replacen(from, to, 1)).unwrap();
        let findings = look_at(&[alice.clone(), bob.clone()]).0;
        said(&findings.into_iter().filter(|finding| finding.about == "meeting").collect::<Vec<_>>(), Level::Broken)
    };
    let access = "<enable_read_access_control>true<";
    assert_eq!(compared(access, "<enable_read_access_control>1<"), "");
    assert!(compared(access, "<enable_read_access_control>false<").contains("enable_read_access_control is true here and false there"));
}

#[test]
fn rules_that_mean_nothing_are_broken() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let governance = std::fs::read_to_string(place.path().join("governance.xml")).unwrap();
    let permissions = std::fs::read_to_string(alice.folder().join("permissions.xml")).unwrap();
    let broken = |governance: &str, permissions: &str| said(&of_documents(alice.folder(), governance, permissions), Level::Broken);
    for (from, to, wanted) in [
        ("<rtps_protection_kind>ENCRYPT<", "<rtps_protection_kind>ENCRYPTED<", "<rtps_protection_kind> is 'ENCRYPTED', none of NONE, SIGN"),
        ("<data_protection_kind>NONE</data_protection_kind>", "", "no <data_protection_kind> in a <topic_rule>"),
        ("<topic_expression>*</topic_expression>", "<topic>*</topic>", "unknown <topic>"),
        ("allow_unauthenticated_participants>false<", "allow_unauthenticated_participants>no<", "is 'no', neither true nor false"),
        ("<enable_read_access_control>true<", "<enable_read_access_control>yes<", "is 'yes', neither true nor false"),
        ("<enable_join_access_control>true</enable_join_access_control>", "", "no <enable_join_access_control> in a <domain_rule>"),
    ] {
        assert!(governance.contains(from));
        let broken = broken(&governance.replacen(from, to, 1), &permissions);
        assert!(broken.contains(wanted), "{from}: {broken}");
    }
    assert!(broken(&governance, &permissions.replace("allow_rule", "allowed_rule")).contains("unknown <allowed_rule>"));
    let rules = governance.find("<topic_access_rules>").unwrap()..governance.find("</domain_rule>").unwrap();
    let without = governance.replace(&governance[rules], "");
    assert!(broken(&without, &permissions).contains("no <topic_access_rules> with a <topic_rule>"));
    let after = permissions.find("<not_after>").unwrap()..permissions.find("</validity>").unwrap();
    assert!(
        broken(&governance, &permissions.replace(&permissions[after], "")).contains("no <not_after> in a <grant>: participants refuse it")
    );
    let elsewhere = governance.replace("<min>0</min>", "<min>3</min>");
    assert!(said(&of_documents(alice.folder(), &elsewhere, &permissions), Level::Note).contains("no rule for domain 0"));
    let uri = alice.cyclone(None).unwrap();
    let config = Path::new(uri.trim_start_matches("file://"));
    std::fs::write(config, std::fs::read_to_string(config).unwrap().replace("Id=\"any\"", "Id=\"2\"")).unwrap();
    assert!(said(&findings(config), Level::Broken).contains("no rule for domain 2"));
    let over = permissions.replace("2049-", "2021-");
    let found = of_documents(alice.folder(), &governance, &over);
    assert!(
        said(&found, Level::Broken).contains("granted to CN=alice expired on 2021") && !said(&found, Level::Broken).contains("no grant")
    );
}

#[test]
fn fast_dds_reads_the_elements_of_a_rule_in_one_order() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let governance = std::fs::read_to_string(place.path().join("governance.xml")).unwrap();
    let permissions = std::fs::read_to_string(alice.folder().join("permissions.xml")).unwrap();
    let kind = "<rtps_protection_kind>ENCRYPT</rtps_protection_kind>";
    let other = governance.replace(kind, "").replace("<discovery_protection_kind>", &format!("{kind}<discovery_protection_kind>"));
    let broken = said(&of_documents(alice.folder(), &other, &permissions), Level::Broken);
    assert!(broken.contains("<rtps_protection_kind> stands before <discovery_protection_kind>: Fast DDS refuses it"), "{broken}");
    let uri = alice.cyclone(None).unwrap();
    let broken = said(&findings(Path::new(&uri)), Level::Broken);
    assert!(!broken.contains("stands before"), "Cyclone takes them in whatever order: {broken}");
}

#[test]
fn what_is_judged_is_what_is_signed() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    // The document, signed, with a comment that has its end in it; and before it a text that nobody has signed.
    let governance = std::fs::read_to_string(place.path().join("governance.xml")).unwrap();
    let sign = |text: &str| {
        std::fs::write(place.path().join("changed.xml"), text).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.current_dir(place.path()).args(["smime", "-sign", "-text", "-in", "changed.xml", "-out", "alice/governance.p7s"]);
        let signer = ["-signer", "permissions_ca.cert.pem", "-inkey", "permissions_ca.key.pem"];
        assert!(openssl.args(signer).output().unwrap().status.success());
    };
    sign(&governance.replacen("<domain_access_rules>", "<!-- </dds> --><domain_access_rules>", 1));
    let signed = std::fs::read_to_string(alice.folder().join("governance.p7s")).unwrap();
    let preamble = "This is an S/MIME signed message";
    assert!(signed.contains(preamble));
    let unsigned = governance.replace("ENCRYPT<", "NONE<").replace("SIGN<", "NONE<");
    std::fs::write(alice.folder().join("governance.p7s"), signed.replace(preamble, &unsigned)).unwrap();
    let judged = || {
        let findings = findings(alice.folder());
        let about = |level| said(&findings, level).lines().filter(|line| line.starts_with("governance: ")).collect::<String>();
        (about(Level::Ok), about(Level::Note), about(Level::Broken))
    };
    assert_eq!(judged(), ("governance: encrypts whole messages".into(), String::new(), String::new()));
    // openssl reads no further than the last part, and waits for who reads what it writes.
    let long = governance.replacen("<domain_access_rules>", &format!("<!-- {} --><domain_access_rules>", "x".repeat(200_000)), 1);
    sign(&long);
    let signed_long = std::fs::read_to_string(alice.folder().join("governance.p7s")).unwrap();
    std::fs::write(alice.folder().join("governance.p7s"), signed_long + &"behind it\n".repeat(50_000)).unwrap();
    assert_eq!(judged(), ("governance: encrypts whole messages".into(), String::new(), String::new()));
    // Where nobody can say whether it is signed, it is still that part.
    std::fs::write(alice.folder().join("governance.p7s"), signed.replace(preamble, &unsigned)).unwrap();
    std::fs::remove_file(alice.folder().join("permissions_ca.cert.pem")).unwrap();
    assert_eq!(judged(), ("governance: encrypts whole messages".into(), String::new(), String::new()));
}

#[test]
fn a_permissions_ca_for_other_purposes_is_broken() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let judged = |purpose: &str| {
        let run = |arguments: &[&str]| {
            let output = Command::new("openssl").current_dir(place.path()).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let authority =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-subj", "/CN=CA", "-days", "99"];
        let purpose = format!("extendedKeyUsage={purpose}");
        run(&[&authority[..], &["-addext", &purpose, "-keyout", "key.pem", "-out", "alice/permissions_ca.cert.pem"]].concat());
        for (document, signed) in [("governance.xml", "alice/governance.p7s"), ("alice/permissions.xml", "alice/permissions.p7s")] {
            let signer = ["-signer", "alice/permissions_ca.cert.pem", "-inkey", "key.pem"];
            run(&[&["smime", "-sign", "-text", "-in", document, "-out", signed], &signer[..]].concat());
        }
        said(&findings(alice.folder()), Level::Broken)
    };
    let broken = judged("serverAuth");
    assert!(broken.contains("permissions CA: ") && broken.contains("extendedKeyUsage lacks emailProtection"), "{broken}");
    assert!(broken.contains("governance: ") && broken.contains("signed with a certificate that may not sign documents"), "{broken}");
    assert_eq!(judged("serverAuth,emailProtection"), "");
}

#[test]
fn two_that_were_not_verified_or_are_in_two_domains_are_not_said_to_meet() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(place.path(), Governance::RTPS).unwrap();
    let (alice, bob) = (material.participant("alice").unwrap(), material.participant("bob").unwrap());
    let uri = alice.cyclone(None).unwrap();
    let config = Path::new(uri.trim_start_matches("file://"));
    let text = std::fs::read_to_string(config).unwrap();
    let meeting = |other: &Path| {
        let findings = look_at(&[config.to_owned(), other.to_owned()]).0;
        findings.into_iter().filter(|finding| finding.about == "meeting").collect::<Vec<_>>()
    };
    let certificate = std::fs::read_to_string(alice.folder().join("cert.pem")).unwrap();
    let named = format!("<IdentityCertificate>file:{}/cert.pem<", alice.folder().display());
    assert!(text.contains(&named), "{text}");
    std::fs::write(config, text.replace(&named, &format!("<IdentityCertificate>data:,{certificate}<"))).unwrap();
    let found = meeting(bob.folder());
    assert_eq!((said(&found, Level::Ok), said(&found, Level::Broken)), (String::new(), String::new()));
    let note = said(&found, Level::Note);
    assert!(note.contains(&format!("not verified whether the other takes these: identity of {}\n", config.display())), "{note}");
    let bobs = bob.cyclone(None).unwrap();
    let bobs = Path::new(bobs.trim_start_matches("file://"));
    let in_domain = |config: &Path, text: &str, id: &str| std::fs::write(config, text.replace("Id=\"any\"", id)).unwrap();
    let bobs_text = std::fs::read_to_string(bobs).unwrap();
    in_domain(config, &text, "Id=\"1\"");
    in_domain(bobs, &bobs_text, "Id=\"2\"");
    let found = meeting(bobs);
    assert!(said(&found, Level::Broken).contains("the one is for domain 1, the other for domain 2: they never meet"));
    assert_eq!(said(&found, Level::Ok), "");
    in_domain(bobs, &bobs_text, "Id=\"1\"");
    assert!(said(&meeting(bobs), Level::Ok).contains("each verifies the other"));
}

#[test]
fn each_of_several_is_told_apart_and_one_that_cannot_be_read_hides_none() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let absent = place.path().join("absent.xml");
    let (findings, refused) = look_at(&[absent.clone(), alice.folder().to_owned()]);
    assert!(refused.is_some() && findings[0].of.as_deref() == absent.to_str());
    assert!(findings.len() > 5 && findings[1..].iter().all(|finding| finding.of.as_deref() == alice.folder().to_str()));
    let said = |file: std::path::PathBuf| config::read(&file).unwrap_err().message;
    assert!(said(place.path().join("governance.xml")).contains("a governance or permissions document"));
    assert!(said(alice.folder().join("cert.pem")).contains("a certificate or a key in PEM form"));
}

#[test]
fn a_document_without_a_header_and_another_authority_of_the_system_are_no_good() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(place.path(), Governance::RTPS).unwrap();
    let alice = material.participant("alice").unwrap();
    let mut openssl = Command::new("openssl");
    openssl.current_dir(place.path()).args(["smime", "-sign", "-in", "governance.xml", "-out", "alice/governance.p7s"]);
    assert!(openssl.args(["-signer", "permissions_ca.cert.pem", "-inkey", "permissions_ca.key.pem"]).output().unwrap().status.success());
    assert!(said(&findings(alice.folder()), Level::Broken).contains("signed without -text"));
    // An authority in the middle of a chain, by itself.
    let mut openssl = Command::new("openssl");
    openssl.current_dir(place.path()).args(["x509", "-req", "-in", "alice/request.pem", "-CA", "identity_ca.cert.pem"]);
    openssl.args([
        "-CAkey",
        "identity_ca.key.pem",
        "-extfile",
        "openssl.cnf",
        "-extensions",
        "authority",
        "-days",
        "40",
        "-out",
        "middle.pem",
    ]);
    assert!(openssl.output().unwrap().status.success());
    let mut openssl = Command::new("openssl");
    openssl.current_dir(place.path()).args(["x509", "-req", "-in", "alice/request.pem", "-CA", "middle.pem", "-CAkey", "alice/key.pem"]);
    openssl.args(["-set_serial", "7", "-days", "40", "-out", "alice/cert.pem"]);
    assert!(openssl.output().unwrap().status.success());
    std::fs::copy(place.path().join("middle.pem"), alice.folder().join("identity_ca.cert.pem")).unwrap();
    assert!(said(&findings(alice.folder()), Level::Broken).contains("identity: "), "half a chain");
}

#[test]
fn a_key_in_the_place_of_its_file_is_not_printed() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let key = std::fs::read_to_string(alice.folder().join("key.pem")).unwrap();
    let named = format!("{}/key.pem", alice.folder().display());
    let cyclone = alice.cyclone(None).unwrap();
    for (config, scheme) in [(Path::new(cyclone.trim_start_matches("file://")), "file:"), (&alice.fastdds().unwrap(), "file://")] {
        let text = std::fs::read_to_string(config).unwrap();
        for (value, about) in [
            (key.clone(), "private key: "),
            (format!("{scheme}{key}"), "private key: "),
            (format!("pkcs11:pin-value={}", &key[40..60]), "private key: "),
            (format!("data:,{key}${{NO"), if scheme == "file:" { "configuration: " } else { "private key: " }),
        ] {
            std::fs::write(config, text.replace(&format!("{scheme}{named}"), &value)).unwrap();
            let findings = findings(config);
            let all = format!("{findings:?}");
            assert!(!all.contains("BEGIN") && !all.contains(&key[40..60]), "{all}");
            // Fast DDS takes its private key out of a token.
            assert!(said(&findings, Level::Broken).contains(about) || scheme == "file://" && value.starts_with("pkcs11:"), "{all}");
        }
    }
}

#[test]
fn what_grows_with_its_depth_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("x.xml");
    std::fs::write(&file, format!("<dds>{}{}</dds>", "<participant>".repeat(50), "</participant>".repeat(50))).unwrap();
    assert!(config::read(&file).unwrap_err().message.contains("deep"));
    // And with the attributes of one element, and the namespaces.
    for attribute in ["a", "xmlns:a"] {
        let attributes: String = (0..1001).map(|number| format!(" {attribute}{number}='u{number}'")).collect();
        std::fs::write(&file, format!("<dds{attributes}/>")).unwrap();
        assert!(config::read(&file).unwrap_err().message.contains("quotation marks"));
    }
    // Which elements within others have of those around them, each compared with all.
    let nested: String = (0..8000).map(|number| format!("<a xmlns:a{number}='u'>")).collect();
    std::fs::write(&file, nested + &"</a>".repeat(8000)).unwrap();
    assert!(config::read(&file).unwrap_err().message.contains("namespaces"));
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let uri = alice.cyclone(Some(Path::new("/proc/self/pagemap"))).unwrap();
    assert!(said(&findings(Path::new(uri.trim_start_matches("file://"))), Level::Broken).contains("not a shared library"));
}

#[test]
fn variables_are_the_environments() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let config = alice.cyclone(None).unwrap();
    let config = Path::new(config.trim_start_matches("file://"));
    let text = std::fs::read_to_string(config).unwrap();
    let folder = alice.folder().display().to_string();
    std::fs::write(config, text.replace(&format!("file:{folder}"), &format!("file:${{NOT_SET_ANYWHERE:-{folder}}}"))).unwrap();
    assert_eq!(said(&findings(config), Level::Broken), "");
    std::fs::write(config, text.replacen(&format!("file:{folder}"), "file:${NOT_SET_ANYWHERE}", 1)).unwrap();
    assert!(said(&findings(config), Level::Note).contains("${NOT_SET_ANYWHERE}: not set here"));
}

/// The configuration with one text in the place of another, and what is broken in it.
fn broken_in(config: &Path, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(config).unwrap();
    assert!(text.contains(from), "{from}: {text}");
    let changed = config.with_file_name("changed.xml");
    let mut text = text.replacen(from, to, 1);
    if let (Some(from), Some(to)) = (from.strip_prefix('<'), to.strip_prefix('<')) {
        let end = |name: &str| format!("</{}>", name.trim_end_matches([' ', '>']));
        // A name that was misspelt at both ends.
        if !to.contains('<') {
            text = text.replace(&end(from), &end(to));
        }
    }
    std::fs::write(&changed, text).unwrap();
    said(&findings(&changed), Level::Broken)
}

#[test]
fn what_fast_dds_would_not_protect_is_broken() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::ROS2).unwrap().participant("alice").unwrap();
    let config = alice.fastdds().unwrap();
    for (from, to, said) in [
        ("dds.sec.auth.plugin", "dds.other", "in the clear"),
        ("dds.sec.access.plugin", "dds.other", "are not read"),
        ("dds.sec.crypto.plugin", "dds.other", "never meet"),
        ("builtin.AES-GCM-GMAC</value>", "builtin.AES</value>", "'builtin.AES'"),
        ("private_key</name>", "privat_key</name>", "private key: no property dds.sec.auth.builtin.PKI-DH.private_key"),
        ("PKI-DH.identity_ca", "identity_ca", "it has dds.sec.auth.builtin.identity_ca, which Fast DDS does not look at"),
        ("file://", "", "does not begin with 'file://'"),
        ("file://", "data:,", "does not begin with 'file://'"),
        ("file:///", "file:///${KEYS}/", "has a variable, which Fast DDS takes as it stands"),
        ("<propertiesPolicy>", "<propertyPolicy>", "<propertyPolicy> where Fast DDS looks for <propertiesPolicy>"),
        ("<participant ", "<particpant ", "<particpant> where Fast DDS looks for <participant>"),
    ] {
        let broken = broken_in(&config, from, to);
        assert!(broken.contains(said), "{from}: {broken}");
    }
    let text = std::fs::read_to_string(&config).unwrap();
    let sized = text.replacen("<property>", "<property><name>dds.sec.crypto.keysize</name><value>512</value></property><property>", 1);
    std::fs::write(&config, sized.replace("is_default_profile=\"true\"", "")).unwrap();
    let notes = said(&findings(&config), Level::Note);
    assert!(notes.contains("'512', which Fast DDS takes as 256") && notes.contains("profile 'secured' is not the default"), "{notes}");
}

#[test]
fn what_cyclone_would_not_start_with_is_broken() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::ROS2).unwrap().participant("alice").unwrap();
    let config = alice.cyclone(None).unwrap();
    let config = Path::new(config.trim_start_matches("file://"));
    for (from, to, said) in [
        ("<Governance>file:", "<Governance>", "does not begin with 'file:' or 'data:,'"),
        ("<PrivateKey>file:", "<PrivateKey>pkcs11:", "does not begin with 'file:' or 'data:,'"),
        ("<Cryptographic>", "<Cryptographic/><Cryptographic>", "more than one <Cryptographic>"),
        (
            "\"dds_security_auth\"",
            "\"dds_security_aut\"",
            "authentication: <Authentication> names dds_security_aut: the dynamic linker finds no",
        ),
        (
            "\"init_access_control\"",
            "\"init_access\"",
            "access control: <AccessControl> names dds_security_ac: has no function 'init_access'",
        ),
        ("path=\"dds_security_ac\"", "path=\"/nowhere.so\"", "access control: <AccessControl> names /nowhere.so: No such file"),
        ("<PrivateKey>file:", "<PrivateKey>file:${NO", "configuration: file:${NO"),
        ("<AccessControl>", "<AccesControl>", "unknown element <AccesControl> in <Security>"),
        ("<Cryptographic>", "<Cryptographic><KeySize>128</KeySize>", "unknown element <KeySize> in <Cryptographic>"),
        ("initFunction=", "initFunktion=", "unknown attribute initFunktion of <Library>"),
        ("Id=\"any\"", "Id=\"five\"", "<Domain Id=\"five\">"),
        ("min=\"default\"", "min=\"1000GB\"", "asks for at least"),
    ] {
        let broken = broken_in(config, from, to);
        assert!(broken.contains(said), "{from}: {broken}");
    }
    let text = std::fs::read_to_string(config).unwrap();
    for name in ["IdentityCA", "IdentityCertificate", "PrivateKey", "PermissionsCA", "Governance", "Permissions"] {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let element = &text[text.find(&open).unwrap()..text.find(&close).unwrap() + close.len()];
        let broken = broken_in(config, element, "");
        assert!(broken.contains(&format!("no <{name}>")), "{name}: {broken}");
    }
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

#[test]
fn what_does_not_belong_together_is_broken() {
    let place = tempfile::tempdir().unwrap();
    let material = Material::make(&place.path().join("ours"), Governance::RTPS).unwrap();
    let (alice, bob) = (material.participant("alice").unwrap(), material.participant("bob").unwrap());
    let other = Material::make(&place.path().join("theirs"), Governance::ROS2).unwrap().participant("alice").unwrap();
    assert!(said(&findings(alice.folder()), Level::Ok).contains("signatures: right: identity, governance, permissions, private key"));
    for (file, from, said_of) in [
        ("identity_ca.cert.pem", &other, "identity"),
        ("permissions_ca.cert.pem", &other, "governance"),
        ("governance.p7s", &other, "governance"),
        ("permissions.p7s", &bob, "permissions"),
        ("key.pem", &bob, "private key"),
    ] {
        let good = std::fs::read(alice.folder().join(file)).unwrap();
        std::fs::copy(from.folder().join(file), alice.folder().join(file)).unwrap();
        let broken = said(&findings(alice.folder()), Level::Broken);
        assert!(broken.contains(&format!("{said_of}: ")), "{file}: {broken}");
        std::fs::write(alice.folder().join(file), good).unwrap();
    }
    let governance = std::fs::read_to_string(alice.folder().join("governance.p7s")).unwrap();
    std::fs::write(alice.folder().join("governance.p7s"), governance.replace("ENCRYPT<", "SIGN<")).unwrap();
    std::fs::write(alice.folder().join("key.pem"), "").unwrap();
    let broken = said(&findings(alice.folder()), Level::Broken);
    assert!(broken.contains("or its text was changed") && broken.contains("no private key in PEM form"), "{broken}");
    std::fs::remove_file(alice.folder().join("key.pem")).unwrap();
    std::fs::create_dir(alice.folder().join("key.pem")).unwrap();
    assert!(said(&findings(alice.folder()), Level::Broken).contains("key.pem: not a file"));
}

#[test]
fn the_plug_in_and_relative_paths_are_looked_at() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::RTPS).unwrap().participant("alice").unwrap();
    let configured = |plug_in: Option<&Path>| {
        let uri = alice.cyclone(plug_in).unwrap();
        findings(Path::new(&uri))
    };
    assert!(said(&configured(None), Level::Note).contains("plug-in: the built-in one"));
    assert!(said(&configured(Some(Path::new("/nowhere/libx.so"))), Level::Broken).contains("names /nowhere/libx.so: No such file"));
    assert!(said(&configured(Some(Path::new("/etc/passwd"))), Level::Broken).contains("not a shared library"));
    let this_test = std::env::current_exe().unwrap();
    assert!(said(&configured(Some(&this_test)), Level::Broken).contains("has no function 'init_crypto'"));
    let file = alice.folder().join("cyclonedds.xml");
    let text = std::fs::read_to_string(&file).unwrap();
    let folder = format!("{}/", alice.folder().display());
    std::fs::write(&file, text.replacen(&folder, "", 1)).unwrap();
    assert!(said(&findings(&file), Level::Note).contains("configuration: file:"));
    let twice = text.replacen("<Domain Id=\"any\">", "<Domain Id=\"1\"><Security/></Domain><Domain Id=\"any\">", 1);
    std::fs::write(&file, twice).unwrap();
    assert!(said(&findings(&file), Level::Note).contains("secures 2 domains"));
    assert!(config::read(tempfile::tempdir().unwrap().path()).unwrap_err().message.contains("no enclave"));
}

#[test]
fn a_pipe_is_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe.xml");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(config::read(&pipe).unwrap_err().message.contains("not a file"));
}

/// What the doctor says of documents with this text, signed by nobody: participants verify that.
fn of_documents(alice: &Path, governance: &str, permissions: &str) -> Vec<Finding> {
    for (name, text) in [("governance.p7s", governance), ("permissions.p7s", permissions)] {
        let header = "Content-Type: multipart/signed; protocol=\"application/x-pkcs7-signature\"; boundary=\"B\"";
        std::fs::write(alice.join(name), format!("{header}\n\n--B\nContent-Type: text/plain\n\n{text}\n--B--\n")).unwrap();
    }
    findings(alice)
}

#[test]
fn levels_are_those_of_one_topic_and_validity_that_of_each_grant() {
    let place = tempfile::tempdir().unwrap();
    let alice = Material::make(place.path(), Governance::DATA).unwrap().participant("alice").unwrap();
    let topic = |name: &str, submessages: &str, payloads: &str| {
        format!(
            "<topic_rule><topic_expression>{name}</topic_expression><metadata_protection_kind>{submessages}</metadata_protection_kind>\
             <data_protection_kind>{payloads}</data_protection_kind></topic_rule>"
        )
    };
    let governance = format!(
        "<dds><domain_rule><rtps_protection_kind>ENCRYPT</rtps_protection_kind>{}{}</domain_rule></dds>",
        topic("a*", "ENCRYPT", "NONE"),
        topic("b*", "NONE", "ENCRYPT")
    );
    let grant = |name: &str, begin: &str, end: &str| {
        format!(
            "<grant><subject_name>CN={name}</subject_name><validity><not_before>{begin}</not_before><not_after>{end}</not_after></validity></grant>"
        )
    };
    let permissions = |second: &str| format!("<dds>{}{second}</dds>", grant("old", "2000-01-01T00:00:00", "2001-01-01T00:00:00"));
    let found = of_documents(alice.folder(), &governance, &permissions(&grant("alice", "2000-01-01T00:00:00", "2999-01-01T00:00:00")));
    let notes = said(&found, Level::Note);
    assert!(notes.contains("every byte of topic a* twice: whole messages and submessages") && !notes.contains("three times"), "{notes}");
    assert!(!notes.contains("CN=old"), "what somebody else was granted is nobody's trouble here: {notes}");
    assert!(said(&found, Level::Ok).contains("for CN=alice"));
    assert!(!said(&found, Level::Broken).contains("no grant"));
    let found = of_documents(alice.folder(), &governance, &permissions(&grant("alice", "2999-01-01T00:00:00", "2999-02-01T00:00:00")));
    assert!(said(&found, Level::Broken).contains("granted to CN=alice does not hold before 2999-01-01"));
    let found = of_documents(alice.folder(), &governance, &permissions(&grant("bob", "2000-01-01T00:00:00", "2999-01-01T00:00:00")));
    assert!(said(&found, Level::Broken).contains("no grant in it holds today for CN=alice"));
}
