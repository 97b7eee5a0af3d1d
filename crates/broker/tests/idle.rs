//! An idle broker uses no processor and little memory.

mod support;

use bywash_broker::{Broker, BrokerConfig};
use bywash_core::Algorithm;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Raw, ctr, ctr_operation, manager};

/// The broker's process; run without its variable, there is nothing for it to do.
#[test]
fn child_of_the_idle_test() {
    let Some(path) = std::env::var_os("BYWASH_TEST_IDLE") else { return };
    let broker = Broker::bind(BrokerConfig::new(path.into(), manager())).unwrap();
    let handle = broker.handle();
    println!("ready");
    std::thread::spawn(move || {
        let _ = std::io::stdin().lines().count();
        handle.shutdown();
    });
    broker.run().unwrap();
}

/// Clock ticks (10 ms each) of user and system time.
fn ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn resident_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn ten_idle_clients_cost_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("idle.sock");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_of_the_idle_test", "--nocapture"])
        .env("BYWASH_TEST_IDLE", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().ends_with("ready")));
    let clients: Vec<_> = (0..10)
        .map(|_| Raw::connect(&path).unwrap())
        .map(|mut client| {
            let session = client.open(&ctr()).unwrap();
            client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [0; 4096])).unwrap();
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let before = ticks(child.id());
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks(child.id()) - before;
    let resident = resident_kib(child.id());
    println!("idle broker with 10 clients: {used} ticks in 2 s, {resident} KiB resident");
    assert!(used <= 1, "{used} ticks of 10 ms in 2 s");
    assert!(resident < 20 << 10, "{resident} KiB");
    drop((clients, child.stdin.take()));
    assert!(child.wait().unwrap().success());
}
