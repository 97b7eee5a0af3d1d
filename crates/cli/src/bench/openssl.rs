//! The system's OpenSSL: ciphers, AEADs, digests and MACs called in this process; public keys by a second of `openssl speed` in every round, a process for each
//! thread that works elsewhere. (Its own `-multi` leaves its children unwaited for, so that their processor time would seem to be somebody else's.)

use super::job::{Job, tolerate};
use super::sites::{OPENSSL, Run, Site};
use bywash_core::{Algorithm, Direction, Error, Result, SessionParams};
use bywash_libcrypto as libcrypto;
use bywash_measure::turns::Figure;
use std::io;
use std::process::{Child, Command, Output, Stdio};

/// One of the tests of `openssl speed`, and which of a line's figures.
struct Test {
    name: &'static str,
    /// What the line begins with.
    line: &'static str,
    /// Fields after the line's beginning; operations per second.
    field: usize,
}

fn test(algorithm: Algorithm) -> Option<Test> {
    use Algorithm as A;
    // +F2:test:bits:sign:verify (RSA), +F4:the same (ECDSA), +F5:test:bits:derive:seconds (ECDH), +F6:test:bits:name:sign:verify (EdDSA).
    let (name, line, field) = match algorithm {
        A::Rsa1024Private => ("rsa1024", "+F2:", 2),
        A::Rsa2048Private => ("rsa2048", "+F2:", 2),
        A::Rsa3072Private => ("rsa3072", "+F2:", 2),
        A::Rsa4096Private => ("rsa4096", "+F2:", 2),
        A::Rsa1024Public => ("rsa1024", "+F2:", 3),
        A::Rsa2048Public => ("rsa2048", "+F2:", 3),
        A::Rsa3072Public => ("rsa3072", "+F2:", 3),
        A::Rsa4096Public => ("rsa4096", "+F2:", 3),
        A::EcdsaP256Sign => ("ecdsap256", "+F4:", 2),
        A::EcdsaP256Verify => ("ecdsap256", "+F4:", 3),
        A::EcdsaP384Sign => ("ecdsap384", "+F4:", 2),
        A::EcdsaP384Verify => ("ecdsap384", "+F4:", 3),
        A::EcdhP256 => ("ecdhp256", "+F5:", 2),
        A::EcdhP384 => ("ecdhp384", "+F5:", 2),
        A::X25519 => ("ecdhx25519", "+F5:", 2),
        A::Ed25519Sign => ("ed25519", "+F6:", 3),
        _ => return None,
    };
    Some(Test { name, line, field })
}

/// OpenSSL as this system has it.
pub(crate) struct OpenSsl {
    /// Looked for once: a machine without it has a column without figures, which says why.
    pub(crate) version: Result<String>,
    /// Whether processor time is counted.
    cpu: bool,
}

impl OpenSsl {
    pub(crate) fn find(cpu: bool) -> Self {
        Self { version: libcrypto::version(), cpu }
    }
}

impl Site for OpenSsl {
    fn name(&self) -> &str {
        OPENSSL
    }

    fn offers(&self, algorithm: Algorithm) -> bool {
        !algorithm.is_public_key() || test(algorithm).is_some()
    }

    fn computes_in_the_calling_thread(&self) -> bool {
        true
    }

    fn open(&self, params: &SessionParams, direction: Direction) -> Result<Run<'_>> {
        self.version.clone()?;
        let algorithm = params.algorithm();
        let mut session = libcrypto::Session::open(params, direction)?;
        Ok(Box::new(move |operations| {
            operations.iter_mut().try_for_each(|operation| tolerate(session.run(&mut operation.borrow()).map(|()| 0), algorithm))
        }))
    }

    /// A rival that computes something else would be no rival.
    fn check(&self, job: &Job) -> Result<()> {
        let (mut theirs, mut ours) = (job.operation.clone(), job.operation.clone());
        self.open(&job.params, job.operation.direction)?(std::slice::from_mut(&mut theirs))?;
        bywash_manager::here().open(&job.params)?.run(&mut ours.borrow())?;
        if theirs == ours { Ok(()) } else { Err(failed(format!("its {} gives other bytes than ours", job.params.algorithm()))) }
    }

    fn figure(&self, algorithm: Algorithm, threads: usize) -> Option<Figure<'_, Error>> {
        let test = test(algorithm)?;
        let cpu = self.cpu;
        Some(Box::new(move || test.measure(cpu, threads)))
    }
}

impl Test {
    /// What so many processes do at the same time, by the clock that everything else is measured by.
    fn measure(&self, cpu: bool, threads: usize) -> Result<(f64, f64)> {
        let begin = || {
            let mut command = Command::new("openssl");
            // Without the user's configuration: a provider named there, Bywash's own among them, would be measured instead.
            command.args(self.arguments(cpu)).env("OPENSSL_CONF", "/dev/null");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        };
        let rate = |ended: io::Result<Output>| {
            let output = ended.map_err(|error| failed(format!("cannot run `openssl speed`: {error}")))?;
            self.rate(&String::from_utf8_lossy(&output.stdout))
        };
        Ok(together(&at_once(threads, begin).into_iter().map(rate).collect::<Result<Vec<_>>>()?))
    }

    /// It counts processor time unless it is told otherwise.
    fn arguments(&self, cpu: bool) -> Vec<&'static str> {
        let elapsed = (!cpu).then_some("-elapsed");
        ["speed", "-mr", "-seconds", "1"].into_iter().chain(elapsed).chain([self.name]).collect()
    }

    /// Operations a second of one process.
    fn rate(&self, text: &str) -> Result<f64> {
        let fields = text.lines().find_map(|line| line.strip_prefix(self.line));
        let rate = fields.and_then(|fields| fields.split(':').nth(self.field)?.parse::<f64>().ok()).filter(|rate| *rate > 0.0);
        rate.ok_or_else(|| failed(format!("`openssl speed -mr {}` printed no figure", self.name)))
    }
}

/// What so many processes print that run at the same time. All are waited for, also where one of them could not be begun.
fn at_once(count: usize, begin: impl Fn() -> io::Result<Child>) -> Vec<io::Result<Output>> {
    let begun: Vec<_> = (0..count).map(|_| begin()).collect();
    begun.into_iter().map(|child| child.and_then(Child::wait_with_output)).collect()
}

/// Nanoseconds of an operation as one process sees it in the mean, operations a second of all.
fn together(rates: &[f64]) -> (f64, f64) {
    (rates.iter().map(|rate| 1e9 / rate).sum::<f64>() / rates.len() as f64, rates.iter().sum())
}

fn failed(reason: String) -> Error {
    Error::EngineFailed { engine: OPENSSL.into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::job::directions;

    /// What OpenSSL 3.0 prints.
    const PRINTED: &str = "+R1:rsa\n+F2:1:1024:10241.379310:164768.750000\n+F4:3:256:46858.620690:15524.242424\n\
        +F5:22:253:27800.000000:0.000036\n+F6:0:253:Ed25519:18962.962963:7353.333333\n";

    #[test]
    fn each_figure_is_found_in_its_line() {
        let rate = |algorithm| test(algorithm).unwrap().rate(PRINTED).unwrap().round();
        assert_eq!(rate(Algorithm::Rsa1024Private), 10241.0);
        assert_eq!(rate(Algorithm::Rsa1024Public), 164_769.0);
        assert_eq!(rate(Algorithm::EcdsaP256Sign), 46859.0);
        assert_eq!(rate(Algorithm::EcdsaP256Verify), 15524.0);
        assert_eq!(rate(Algorithm::X25519), 27800.0);
        assert_eq!(rate(Algorithm::Ed25519Sign), 18963.0);
        let error = test(Algorithm::X25519).unwrap().rate("").unwrap_err();
        assert!(error.to_string().contains("ecdhx25519"), "{error}");
    }

    #[test]
    fn the_rival_is_timed_by_the_same_clock() {
        let arguments = |cpu| test(Algorithm::X25519).unwrap().arguments(cpu).join(" ");
        assert_eq!(arguments(true), "speed -mr -seconds 1 ecdhx25519");
        assert_eq!(arguments(false), "speed -mr -seconds 1 -elapsed ecdhx25519");
    }

    #[test]
    fn threads_are_compared_with_as_many_processes() {
        assert_eq!(together(&[1e6]), (1000.0, 1e6));
        assert_eq!(together(&[1e6, 0.5e6]), (1500.0, 1.5e6));
        match test(Algorithm::X25519).unwrap().measure(false, 2) {
            Ok((ns, per_s)) => assert!(ns > 0.0 && per_s > 0.0, "{ns} ns, {per_s} a second"),
            Err(error) => println!("skipped: {error}"),
        }
    }

    #[test]
    fn processes_that_are_compared_run_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        // Whoever comes first waits for the other to open the pipe as well.
        let script = "mkfifo pipe 2> /dev/null && exec cat pipe || echo met > pipe";
        let begin = || Command::new("timeout").args(["60", "sh", "-c", script]).current_dir(&folder).stdout(Stdio::piped()).spawn();
        let ended: Vec<_> = at_once(2, begin).into_iter().map(|ended| ended.unwrap()).collect();
        assert!(ended.iter().all(|ended| ended.status.success()), "{ended:?}");
        assert_eq!(ended.iter().flat_map(|ended| &ended.stdout).count(), "met\n".len());
    }

    #[test]
    fn openssl_gives_the_same_bytes_at_every_size() {
        let rival = OpenSsl::find(false);
        if let Err(error) = &rival.version {
            return println!("skipped: {error}");
        }
        let (mut agreed, here) = (0, bywash_manager::here());
        for &algorithm in Algorithm::ALL.iter().filter(|algorithm| !algorithm.is_public_key()) {
            if !here.supports(algorithm) {
                println!("skipped: {algorithm} is not computed on this processor");
                continue;
            }
            for &direction in directions(algorithm) {
                for bytes in [0, 1, 15, 16, 17, 64, 255, 1024, 5000] {
                    match rival.check(&Job::new(algorithm, direction, bytes).unwrap()) {
                        Ok(()) => agreed += 1,
                        Err(Error::Unsupported { .. }) => println!("skipped: this OpenSSL has no {algorithm}"),
                        Err(error) => panic!("{algorithm} {direction:?} of {bytes} bytes: {error}"),
                    }
                }
            }
        }
        assert!(agreed > 300, "only {agreed} comparisons");
    }
}
