//! Debian's own Cyclone DDS with this plug-in, as a configuration names it, against the same with the built-in one: real processes on loopback, under every
//! governance, in both directions.

use bywash_dds_material::{Governance, Material};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long two processes may take to find and authenticate each other and to exchange messages, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
/// Answers that are enough.
const ROUND_TRIPS: u64 = 20;

fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test program knows itself");
    let library = test.with_file_name("libbywash_dds_cyclone.so");
    assert!(library.is_file(), "{} is not built", library.display());
    library
}

/// Whether there is something to test with; says so if not.
fn is_there() -> bool {
    let there = Command::new("ddsperf").arg("help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("skipped: no ddsperf (Debian: cyclonedds-tools)");
    }
    there
}

struct Program(Child);

impl Program {
    fn start(uri: &str, domain: u32, arguments: &[&str], blocks: Option<&str>) -> Self {
        Self::start_with(uri, domain, arguments, blocks.map(|blocks| ("BYWASH_DDS_BLOCKS", blocks)))
    }

    fn start_with(uri: &str, domain: u32, arguments: &[&str], setting: Option<(&str, &str)>) -> Self {
        let mut command = Command::new("ddsperf");
        command.env("CYCLONEDDS_URI", uri).arg("-i").arg(domain.to_string()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(setting);
        Self(command.spawn().expect("ddsperf starts"))
    }

    fn has_loaded_the_plug_in(&self) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.0.id())).unwrap_or_default();
        maps.contains("libbywash_dds_cyclone.so")
    }

    fn end(mut self) -> String {
        // A polite end: it closes its participant, which ends the plug-in.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let mut said = String::new();
        for output in [
            &mut self.0.stdout.take().map(|out| Box::new(out) as Box<dyn std::io::Read>),
            &mut self.0.stderr.take().map(|out| Box::new(out) as _),
        ] {
            let mut text = Vec::new();
            output.as_mut().map(|output| output.read_to_end(&mut text));
            said.push_str(&String::from_utf8_lossy(&text));
        }
        let status = self.0.wait().expect("it ends");
        assert!(status.code().is_some(), "ddsperf was ended by a signal ({status}):\n{said}");
        said
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The round trips that `ddsperf ping` has told of.
fn round_trips(said: &str) -> u64 {
    said.lines().filter_map(|line| line.split_once(" cnt ")?.1.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

/// One side asks, the other answers; each with the plug-in or without. In domains of their own, so that tests may run at once.
fn talk(material: &Material, domain: u32, asks: bool, answers: bool, size: &str, blocks: Option<&str>) {
    let library = library();
    let uri = |name: &str, is_ours: bool| {
        let name = format!("{name}{domain}{size}");
        material.participant(&name).unwrap().cyclone(is_ours.then_some(library.as_path())).unwrap()
    };
    let what = format!("{}, {size}: plug-in asks: {asks}, answers: {answers}", material.governance().name);
    let answering = Program::start(&uri("answers", answers), domain, &["-D60", "pong"], blocks);
    let began = Instant::now();
    // It tells once a second, so that it is asked for a little while, and again until that was enough.
    loop {
        let asking = Program::start(&uri("asks", asks), domain, &["-D3", "ping", "size", size], blocks);
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!((asking.has_loaded_the_plug_in(), answering.has_loaded_the_plug_in()), (asks, answers), "{what}");
        std::thread::sleep(Duration::from_millis(2200));
        let said = asking.end();
        if round_trips(&said) >= ROUND_TRIPS {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: too few answers:\n{said}\nThe other side said:\n{}", answering.end());
    }
    answering.end();
}

fn both_ways(governance: Governance, first_domain: u32) {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let material = Material::make(folder.path(), governance).unwrap();
    for (at, (asks, answers)) in [(true, false), (false, true), (true, true)].into_iter().enumerate() {
        talk(&material, first_domain + at as u32, asks, answers, "1k", None);
    }
    talk(&material, first_domain + 3, true, false, "300k", None);
    // With a key that changes after each few messages.
    talk(&material, first_domain + 4, true, false, "10k", Some("50"));
}

#[test]
fn with_nothing_protected() {
    both_ways(Governance::OFF, 100);
}

#[test]
fn with_payloads_encrypted() {
    both_ways(Governance::DATA, 110);
}

#[test]
fn with_messages_encrypted() {
    both_ways(Governance::RTPS, 120);
}

#[test]
fn with_what_ros_2_asks_for() {
    both_ways(Governance::ROS2, 130);
}

#[test]
fn with_all_encrypted() {
    both_ways(Governance::ALL, 140);
}

#[test]
fn with_a_tag_for_each_receiver() {
    both_ways(Governance::ORIGIN, 150);
}

#[test]
fn a_mistyped_setting_is_said_when_the_plug_in_is_loaded() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let material = Material::make(folder.path(), Governance::ROS2).unwrap();
    let uri = material.participant("alone").unwrap().cyclone(Some(&library())).unwrap();
    for (name, value) in [("BYWASH_ROUTE", "hier"), ("BYWASH_KEEP", "many"), ("BYWASH_DDS_BLOCKS", "few")] {
        let program = Program::start_with(&uri, 160, &["-D60", "pong"], Some((name, value)));
        let began = Instant::now();
        while !program.has_loaded_the_plug_in() {
            assert!(began.elapsed() < PATIENCE, "the plug-in is not loaded");
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(600));
        let said = program.end();
        assert!(said.contains(name) && said.contains(value), "{said}");
    }
}
