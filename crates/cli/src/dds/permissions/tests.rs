//! Names and dates as each implementation reads them.

use super::*;
use crate::doctor::Level;

#[test]
fn names_are_compared_as_each_implementation_does() {
    let ours = "CN=alice,O=robots";
    for (granted, cyclone, fast) in [
        ("CN=alice,O=robots", true, true),
        ("CN=alice , O=robots", false, true),
        ("O=robots,CN=alice", true, false),
        ("/O=robots/CN=alice", true, false),
        ("O=robots|CN=alice,", true, false),
        ("CN=alice,OU=arms,O=robots", true, false),
        ("CN=alice,CN=bob,O=robots", true, false),
        ("CN=bob,CN=alice,O=robots", false, false),
        ("CN=alice", false, false),
        ("CN=Alice,O=robots", false, false),
        ("", false, false),
    ] {
        assert_eq!((is_name_for_cyclone(ours, granted), is_name_for_fast_dds(ours, granted)), (cyclone, fast), "{granted}");
    }
    let enclave = "CN=/talker_listener/talker";
    assert!(is_name_for_cyclone(enclave, enclave) && is_name_for_fast_dds(enclave, enclave));
    assert!(!is_name_for_cyclone(enclave, "CN=/talker_listener/listener"));
    assert!(!is_name_for_cyclone("CN=a//b", "CN=a//b"), "an empty part of the certificate's name is in no grant");
    let many = (0..21).map(|part| format!("X{part}=1,")).collect::<String>();
    assert!(!is_name_for_cyclone("CN=a", &format!("CN=a,{many}")));
}

#[test]
fn a_subject_is_written_as_each_implementation_does() {
    let place = tempfile::tempdir().unwrap();
    let certificate = place.path().join("cert.pem");
    let mut openssl = std::process::Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-noenc",
        "-utf8",
        "-subj",
        "/O=robots/CN=Zoé",
    ]);
    assert!(openssl.args(["-keyout", "/dev/null", "-out"]).arg(&certificate).output().unwrap().status.success());
    assert_eq!(trust::subject(&certificate, true).unwrap(), "CN=Zo\\C3\\A9,O=robots");
    assert_eq!(trust::subject(&certificate, false).unwrap(), "CN=Zoé,O=robots");
}

#[test]
fn dates_are_read_as_cyclone_reads_them() {
    let at = |text: &str| moment(text).unwrap_or_else(|| panic!("{text}")).at();
    let midnight = at("2030-12-31T00:00:00").unwrap();
    assert_eq!(midnight, 1_924_905_600);
    assert_eq!(at("2030-12-31T00:00:01Z"), Some(midnight + 1));
    assert_eq!(at("2030-12-31T02:30:00+02:30"), Some(midnight));
    assert_eq!(at("2030-12-30T23:00:00.5-01:00"), Some(midnight));
    assert_eq!(at("2030-12-31T00:00:00.123456789012"), Some(midnight));
    assert_eq!(at("2030-12-31T00:00:00+13:00"), None, "further than Cyclone takes");
    assert!(at("2262-12-31T23:59:59").is_some() && at("2263-01-01T00:00:00").is_none());
    for wrong in [
        "",
        "soon",
        "2030-12-31",
        "2030-13-01T00:00:00",
        "2030-02-29T00:00:00",
        "2030-12-31 00:00:00",
        "2030-12-31T0",
        "2030-12-31T24:00:00",
        "2030-12-31T00:00:00.",
        "2030-12-31T00:00:00.1234567890123",
        "2030-12-31T00:00:00z",
        "2030-12-31T00:00:00 UTC",
        "2030-12-31T00:00:00+1:00",
        "2030-12-31T00:00:00+01:60",
        "2030-12-31T00:00:00+0100",
        "2030-12-31T00:00:00+01:00Z",
        "+030-12-31T00:00:00",
        "äöäöäöäöäö",
    ] {
        assert_eq!(moment(wrong), None, "{wrong}");
    }
}

/// What is found of grants from day to day of 2030, for one whose name is CN=alice, on a day at noon.
fn found(kind: Kind, grants: &[(&str, &str, &str)], now: &str) -> Vec<(Level, String)> {
    let bound = |text: &str| Bound { text: text.into(), moment: moment(text) };
    let grants = grants.iter().map(|(name, begin, end)| Grant { name: (*name).into(), begin: bound(begin), end: bound(end) });
    let subject = || Some("CN=alice".into());
    let subjects = Subjects { to_cyclone: subject(), to_fast_dds: subject() };
    let now = moment(now).unwrap().at().unwrap();
    let findings = of_grants(Path::new("permissions.p7s"), kind, &grants.collect::<Vec<_>>(), &subjects, now);
    findings.into_iter().map(|finding| (finding.level, finding.found)).collect()
}

const OVER: (&str, &str, &str) = ("CN=alice", "2020-01-01T00:00:00", "2021-01-01T00:00:00");
const HOLDS: (&str, &str, &str) = ("CN=alice", "2020-01-01T00:00:00", "2040-01-01T00:00:00");
const NOW: &str = "2030-06-01T12:00:00";

fn levels(found: &[(Level, String)]) -> Vec<Level> {
    found.iter().map(|(level, _)| *level).collect()
}

#[test]
fn of_several_grants_cyclone_takes_the_first_and_fast_dds_the_first_that_holds() {
    for (grants, cyclone, fast, enclave) in [
        (vec![HOLDS], vec![Level::Ok], vec![Level::Ok], vec![Level::Ok]),
        (vec![OVER], vec![Level::Broken], vec![Level::Broken], vec![Level::Broken]),
        (vec![HOLDS, OVER], vec![Level::Ok], vec![Level::Note, Level::Ok], vec![Level::Note, Level::Ok]),
        (vec![OVER, HOLDS], vec![Level::Broken], vec![Level::Note, Level::Ok], vec![Level::Broken, Level::Note, Level::Ok]),
        (vec![("CN=bob", OVER.1, OVER.2), HOLDS], vec![Level::Ok], vec![Level::Ok], vec![Level::Ok]),
        // To Cyclone that name has all that the certificate's has.
        (vec![("OU=x,CN=alice", OVER.1, OVER.2), HOLDS], vec![Level::Broken], vec![Level::Ok], vec![Level::Broken, Level::Ok]),
        (vec![("CN= alice", HOLDS.1, HOLDS.2)], vec![Level::Broken], vec![Level::Broken], vec![Level::Broken]),
    ] {
        for (kind, expected) in [(Kind::Cyclone, cyclone), (Kind::FastDds, fast), (Kind::Enclave, enclave)] {
            let found = found(kind, &grants, NOW);
            assert_eq!(levels(&found), expected, "{kind:?}: {grants:?}: {found:?}");
        }
    }
    assert!(found(Kind::Enclave, &[OVER, HOLDS], NOW)[0].1.contains("broken under rmw_cyclonedds_cpp"));
    assert!(
        found(Kind::Cyclone, &[OVER, HOLDS], NOW)[0]
            .1
            .contains("expired on 2021-01-01T00:00:00; of several grants for a subject the first counts")
    );
}

#[test]
fn zones_count_for_cyclone_and_make_hours_uncertain_for_fast_dds() {
    let until = |end: &'static str| [("CN=alice", HOLDS.1, end)];
    for (end, cyclone, fast) in [
        // An hour ago, and in an hour.
        ("2030-06-01T12:00:00+01:00", vec![Level::Broken], vec![Level::Note, Level::Ok]),
        ("2030-06-01T12:00:00-01:00", vec![Level::Ok], vec![Level::Note, Level::Ok]),
        ("2030-06-02T01:00:00", vec![Level::Ok], vec![Level::Note, Level::Ok]),
        ("2030-06-02T03:00:00", vec![Level::Ok], vec![Level::Ok]),
        ("2030-05-31T21:00:00", vec![Level::Broken], vec![Level::Broken]),
        ("2030-07-01", vec![Level::Broken], vec![Level::Broken]),
        ("2999-01-01T00:00:00", vec![Level::Broken], vec![Level::Ok]),
    ] {
        assert_eq!(levels(&found(Kind::Cyclone, &until(end), NOW)), cyclone, "Cyclone: {end}");
        assert_eq!(levels(&found(Kind::FastDds, &until(end), NOW)), fast, "Fast DDS: {end}");
    }
    let from = [("CN=alice", "2030-06-01T14:00:00", HOLDS.2)];
    assert_eq!(levels(&found(Kind::Enclave, &from, NOW)), [Level::Broken, Level::Note, Level::Ok], "begins in two hours");
}
