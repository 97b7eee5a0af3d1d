//! What another process needs to reach a broker and come back: measured with a broker of our own, in a process of its own.

use crate::broker_link::probe;
use crate::failure::Failure;
use bywash_client::{Client, Config, Route};
use bywash_core::{Algorithm, Error};
use bywash_manager::calibrate::sample;
use bywash_measure::statistics::quantile;
use bywash_measure::turns::{Call, Clock, Contender, Effort, take_turns};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a broker may take to answer: it may have to calibrate first.
const START: Duration = Duration::from_secs(20);
const EFFORT: Effort = Effort { rounds: 15, slice: Duration::from_millis(10), clock: Clock::Wall };
/// A small operation, so that little but the way is measured.
const ALGORITHM: Algorithm = Algorithm::Sha256;
const BYTES: usize = 16;

/// Ends the broker, whatever happens.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nanoseconds of the way to a broker and back: an operation there less the same operation here.
pub(super) fn broker_ns() -> Result<f64, Failure> {
    let failed = |what: &str, error: &std::io::Error| Failure::failed(format!("{what}: {error}"));
    let folder = tempfile::tempdir().map_err(|error| failed("cannot make a folder for a broker's socket", &error))?;
    let socket = folder.path().join("broker");
    let bywash = std::env::current_exe().map_err(|error| failed("cannot find this executable", &error))?;
    let mut command = Command::new(bywash);
    command.arg("serve").arg("--socket").arg(&socket).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut served = Served(command.spawn().map_err(|error| failed("cannot start a broker", &error))?);
    let begun = Instant::now();
    while probe(&socket).is_err() {
        if begun.elapsed() > START || served.0.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err(Failure::failed("the broker that was to be measured does not answer; see `bywash serve`"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let client = Client::new(Config { socket: Some(socket), route: Route::Queue, ..Config::default() });
    Ok(difference_ns(&client)?)
}

fn difference_ns(client: &Client) -> Result<f64, Error> {
    let (params, operation) = sample(ALGORITHM, BYTES)?;
    let (there, here) = (client.session(params.clone())?, bywash_manager::here().open(&params)?);
    let (mut for_there, mut for_here) = (operation.clone(), operation);
    let there: Call<'_, Error> = Box::new(move || there.run(&mut for_there.borrow()).map(drop));
    let here: Call<'_, Error> = Box::new(move || here.run(&mut for_here.borrow()).map(drop));
    let mut contenders = [there, here].map(|call| Contender::Calls { threads: vec![call], operations: 1 });
    let times: Vec<_> = take_turns(&mut contenders, EFFORT, &mut || {}, &|| true).into_iter().collect::<Result<_, _>>()?;
    match client.counted(ALGORITHM) {
        // The shortest, as in all calibration: what other load adds is not the way's.
        (0, _) => Ok((quantile(&times[0].ns_per_op, 0.0) - quantile(&times[1].ns_per_op, 0.0)).max(0.0)),
        _ => Err(Error::Unavailable { what: "the broker did not take all operations; its way was not measured".into() }),
    }
}
