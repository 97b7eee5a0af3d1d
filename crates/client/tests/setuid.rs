//! A setuid program does not believe its environment.

use bywash_client::{Config, Route};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program's side of the next test; run without its variable, there is nothing for it to do.
#[test]
fn child_of_the_setuid_test() {
    if std::env::var_os("BYWASH_TEST_SETUID").is_none() {
        return;
    }
    let config = Config::from_env().unwrap();
    println!("socket {:?} route {} run {:?}", config.socket, config.route, config.run);
    assert_ne!(config.route, Route::Here);
}

/// What a copy of this very program makes of the environment, with this mode, called by user 65534.
fn told(mode: u32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args(["--exact", "child_of_the_setuid_test", "--nocapture"]).uid(65_534).gid(65_534).env("BYWASH_TEST_SETUID", "1");
    command.env("BYWASH_SOCKET", "/evil").env("BYWASH_ROUTE", "queue").env("BYWASH_RUN", "evil").env("XDG_RUNTIME_DIR", "/evil");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_setuid_program_does_not_send_its_keys_where_its_caller_says() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make a program setuid and call it as another user");
        return;
    }
    let plain = told(0o755);
    assert!(plain.contains("evil") && plain.contains("route queue"), "{plain}");
    let setuid = told(0o4755);
    assert!(!setuid.contains("evil") && setuid.contains("route auto"), "{setuid}");
}
