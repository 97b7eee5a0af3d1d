//! Starting the command as a user would.

pub(crate) mod place;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The command, with nothing of the caller's own OpenSSL or Bywash settings.
pub(crate) fn bywash() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bywash"));
    for name in ["OPENSSL_CONF", "BYWASH_SOCKET", "BYWASH_ROUTE", "BYWASH_RUN", "BYWASH_PROVIDER"] {
        command.env_remove(name);
    }
    // The provider as built for these tests; the one beside the executable may be older.
    command.env("BYWASH_PROVIDER", provider()).env("NO_COLOR", "1").env("BYWASH_SOCKET", "/nowhere/bywash.sock");
    command
}

/// The shared object, which cargo builds as a dependency of these tests.
pub(crate) fn provider() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_bywash")).parent().expect("a folder");
    let path = folder.join("deps/libbywash_openssl.so");
    assert!(path.is_file(), "{} was not built", path.display());
    path
}

/// What a finished command wrote to stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a finished command wrote to stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs to the end, with nothing on stdin, and demands this exit code and something said on stderr.
pub(crate) fn refused(command: &mut Command, exit: i32, says: &str) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(exit), "{command:?}: {}{}", stdout(&output), stderr(&output));
    assert!(stderr(&output).contains(says), "{command:?} said: {}", stderr(&output));
    output
}

/// Runs to the end and demands success.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{command:?}: {}\n{}{}", output.status, stdout(&output), stderr(&output));
    output
}

/// Runs to the end with that on stdin, of which it need not read all.
pub(crate) fn piped(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// A child that is killed when the test ends, however it ends.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts"))
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &self.0.id().to_string()]).status().expect("kill starts");
        assert!(sent.success());
    }

    /// The status, which must come within a bound.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        let mut status = None;
        eventually("the command ends", || {
            status = self.0.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a condition, within a bound that only a hang exceeds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
