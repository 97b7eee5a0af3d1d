//! Every check of the probe under the supervisor: this test again, as the program that is supervised.

use bywash_client::{Clients, Config, Route};
use bywash_cryptodev_probe::Tally;
use bywash_cryptodev_probe::kernel::{Kernel, Transport};
use bywash_cryptodev_supervisor::{Supervision, support};
use std::process::{Command, Stdio};

const INNER: &str = "BYWASH_TEST_INNER";
const NAME: &str = "every_check_holds_under_the_supervisor";

#[test]
fn every_check_holds_under_the_supervisor() {
    if std::env::var_os(INNER).is_some() {
        return every_check_holds();
    }
    if let Err(reason) = support() {
        return eprintln!("skipped: {reason}");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([NAME, "--exact", "--nocapture", "--test-threads=1"]).env(INNER, "1").stdout(Stdio::piped());
    let supervision = Supervision::prepare(&mut command).unwrap();
    let child = command.spawn().unwrap();
    let clients = Clients::new(Config { route: Route::Here, ..Config::default() }).unwrap();
    let supervisor = supervision.begin(clients, None).unwrap();
    let output = child.wait_with_output().unwrap();
    supervisor.wait();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{said}", output.status);
    assert!(said.contains(" ok, 0 not ok, 0 skipped"), "{said}");
}

fn every_check_holds() {
    let tally = Tally::of(&Kernel { transport: Transport::Supervisor });
    println!("{tally}");
    assert!(tally.wrong.is_empty(), "\n{}\n", tally.wrong.join("\n"));
}
