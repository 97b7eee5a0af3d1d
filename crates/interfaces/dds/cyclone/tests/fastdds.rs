//! Debian's own Fast DDS against Debian's own Cyclone DDS with this plug-in: questions one way and answers the other, under every governance.
//!
//! Both ends are small programs against the installed libraries (`tests/fastdds`), made by the test. Fast DDS 2.9.1 as the one who asks for the handshake fails
//! against Cyclone, with the built-in plug-ins too. It is asked for by the participant with the smaller GUID, and a GUID begins with a hash of the
//! certificate's subject: with the names that the two have here it is Cyclone.

use bywash_dds_material::{Governance, Material, Participant};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Times that new processes are given: some pairs never agree, with the built-in plug-in in Cyclone (1 of 12) as with this one (2 of 12).
const TRIES: usize = 4;
/// Seconds in which 20 questions are answered. Where payloads alone are protected, Fast DDS takes seven to begin.
const SECONDS: &str = "25";
/// In one datagram, and in fragments.
const SIZES: [&str; 2] = ["1000", "60000"];

/// A command with its arguments; none if there is no such program.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> Option<()> {
    let output = Command::new(program).current_dir(folder).args(arguments).output().ok()?;
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// The two programs; none, and why, if they cannot be made here.
fn programs(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fastdds");
    let source = |name: &str| sources.join(name).to_string_lossy().into_owned();
    let is_there = |header: &str| Path::new("/usr/include").join(header).exists();
    if !is_there("dds/dds.h") || !is_there("fastdds/dds/domain/DomainParticipant.hpp") || !is_there("asio.hpp") {
        eprintln!("skipped: no headers of both implementations (Debian: cyclonedds-dev, libfastrtps-dev, libasio-dev)");
        return None;
    }
    if run(folder, "idlc", &["-l", "c", &source("text.idl")]).is_none() {
        eprintln!("skipped: no idlc (Debian: cyclonedds-tools)");
        return None;
    }
    run(folder, "cc", &["-O1", "-I.", "-o", "answer", &source("answer.c"), "text.c", "-lddsc"])?;
    run(folder, "c++", &["-std=c++17", "-o", "ask", &source("ask.cpp"), "-lfastrtps", "-lfastcdr"])?;
    Some((folder.join("answer"), folder.join("ask")))
}

/// A profile for loopback alone, with a number that keeps it off the ports of the other, and where that one is: Cyclone asks who is there only when it starts.
fn profile(participant: &Participant, domain: u32) -> PathBuf {
    let property = |(name, value)| format!("<property><name>{name}</name><value>{value}</value></property>");
    let properties: String = participant.fastdds_properties().into_iter().map(property).collect();
    // The first participant's port for discovery (RTPS 2.3 s9.6.1.1).
    let port = 7400 + 250 * domain + 10;
    let text = format!(
        "<dds xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\"><profiles>
<transport_descriptors><transport_descriptor><transport_id>lo</transport_id><type>UDPv4</type>
<interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList></transport_descriptor></transport_descriptors>
<participant profile_name=\"secured\" is_default_profile=\"true\"><rtps><participantID>7</participantID>
<builtin><initialPeersList><locator><udpv4><address>127.0.0.1</address><port>{port}</port></udpv4></locator></initialPeersList></builtin>
<useBuiltinTransports>false</useBuiltinTransports><userTransports><transport_id>lo</transport_id></userTransports>
<propertiesPolicy><properties>{properties}</properties></propertiesPolicy></rtps></participant></profiles></dds>"
    );
    let path = participant.folder().join("loopback.xml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Ends a program when it goes out of scope.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `ask` said, and whether all answers came and were right.
fn exchange(material: &Material, (answer, ask): &(PathBuf, PathBuf), domain: u32, size: &str) -> (bool, String) {
    let library = std::env::current_exe().unwrap().with_file_name("libbywash_dds_cyclone.so");
    assert!(library.is_file(), "{} is not built", library.display());
    let (cyclone, fast) = (material.participant("alice").unwrap(), material.participant("bob").unwrap());
    let mut answers = Command::new(answer);
    answers.arg(domain.to_string()).env("CYCLONEDDS_URI", cyclone.cyclone(Some(&library)).unwrap()).stdout(Stdio::null());
    let mut answers = Running(answers.spawn().unwrap());
    let mut asks = Command::new(ask);
    asks.args([&domain.to_string(), "20", size, SECONDS]).env("FASTRTPS_DEFAULT_PROFILES_FILE", profile(&fast, domain));
    let said = asks.output().unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", answers.0.id())).unwrap_or_default();
    assert!(maps.contains("libbywash_dds_cyclone.so"), "Cyclone did not load the plug-in");
    assert!(answers.0.try_wait().unwrap().is_none(), "the side of Cyclone ended");
    assert_ne!(said.status.code(), Some(3), "a wrong answer: {}", String::from_utf8_lossy(&said.stderr));
    (said.status.success(), [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat())
}

#[test]
fn fast_dds_and_the_plug_in_understand_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let Some(programs) = programs(folder.path()) else { return };
    std::thread::scope(|scope| {
        for (at, governance) in Governance::FIVE.into_iter().enumerate() {
            let (material_at, programs) = (folder.path().join(governance.name), &programs);
            scope.spawn(move || {
                let material = Material::make(&material_at, governance).unwrap();
                // A domain of its own, with ports of its own.
                let domain = 160 + at as u32;
                for size in SIZES {
                    let tries = (0..TRIES).map(|_| exchange(&material, programs, domain, size));
                    let said: Vec<String> = tries.map_while(|(worked, said)| (!worked).then_some(said)).collect();
                    assert!(said.len() < TRIES, "{}, {size} bytes: {said:?}", governance.name);
                }
            });
        }
    });
}
