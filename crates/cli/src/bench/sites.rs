//! The places: here, here in lanes, the library alone, in this process's queue, at the broker, and OpenSSL beside them.

use super::job::{Job, tolerate};
use super::openssl::OpenSsl;
use crate::broker_link::{Link, probe, socket_path};
use crate::failure::Failure;
use crate::terminal::say;
use bywash_client::{Client, Config, Route};
use bywash_core::route::route_index;
use bywash_core::{Algorithm, Direction, Engine, Error, Keyed, OwnedOperation, Place, Result, SessionParams, Task};
use bywash_manager::{EngineName, Manager, ManagerConfig, SessionId};
use bywash_measure::turns::Figure;
use bywash_protocol::StatsFormat;
use std::path::Path;
use std::sync::{Arc, mpsc};

/// Work in the calling thread.
const HERE: &str = "here";
/// Work in the calling thread, several operations side by side.
const LANES: &str = "lanes";
/// Work in the calling thread by AWS-LC alone, without our kernels.
const LIBRARY: &str = "library";
/// Work by way of a manager in this process.
const QUEUE: &str = "queue";
/// Work by way of the running broker.
const BROKER: &str = "broker";
/// The system's OpenSSL.
pub(crate) const OPENSSL: &str = "openssl";

/// A place as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PlaceName {
    /// The calling thread
    Here,
    /// The calling thread, a full batch of public-key operations side by side
    Lanes,
    /// The calling thread, by AWS-LC alone
    Library,
    /// A manager in this process
    Queue,
    /// The running broker
    Broker,
}

/// Runs all operations it is given to their end, in one thread.
pub(crate) type Run<'a> = Box<dyn FnMut(&mut [OwnedOperation]) -> Result<()> + Send + 'a>;

/// Somewhere operations can run.
pub(crate) trait Site: Sync {
    /// What the column is headed with.
    fn name(&self) -> &str;

    /// Whether its times come from a model.
    fn is_modelled(&self) -> bool {
        false
    }

    /// The engines behind it, where it may be one or another.
    fn engines(&self) -> Option<String> {
        None
    }

    /// Whether its cycles are the calling core's.
    fn computes_in_the_calling_thread(&self) -> bool {
        false
    }

    /// Whether it has anything to show for this algorithm.
    fn offers(&self, _algorithm: Algorithm) -> bool {
        true
    }

    /// How many operations it takes at once if so many are asked for.
    fn batch(&self, _algorithm: Algorithm, asked: usize) -> usize {
        asked
    }

    /// Whether what would be measured computes the right thing.
    fn check(&self, _job: &Job) -> Result<()> {
        Ok(())
    }

    /// Whether what was measured really ran there.
    fn confirm(&self, _algorithm: Algorithm) -> Result<()> {
        Ok(())
    }

    /// Opens a session there, for one thread.
    fn open(&self, params: &SessionParams, direction: Direction) -> Result<Run<'_>>;

    /// Figures that it measures itself with so many threads, where its operations cannot be run one by one.
    fn figure(&self, _algorithm: Algorithm, _threads: usize) -> Option<Figure<'_, Error>> {
        None
    }
}

/// What is to be compared.
pub(crate) struct Wanted<'a> {
    /// The calling thread's places alone.
    pub(crate) cpu: bool,
    /// These and no others, if any are named.
    pub(crate) places: &'a [PlaceName],
    pub(crate) engines: &'a [EngineName],
    pub(crate) socket: Option<&'a Path>,
    pub(crate) openssl: bool,
}

/// All places, and who would choose among them.
pub(crate) struct Sites {
    all: Vec<Box<dyn Site>>,
    routes: Vec<Place>,
    broker: Option<Client>,
    /// Other processes that work for one of the places; 0 for one that cannot be seen from here.
    pub(crate) workers: Vec<u32>,
}

impl Sites {
    /// Looks for them; a broker that does not answer is left out, unless it was asked for.
    pub(crate) fn find(wanted: &Wanted<'_>) -> core::result::Result<Self, Failure> {
        use PlaceName as P;
        let default: &[P] = if wanted.cpu { &[P::Here, P::Lanes] } else { &[P::Here, P::Lanes, P::Queue, P::Broker] };
        let named = !wanted.places.is_empty();
        let places = if named { wanted.places } else { default };
        let has = |place| places.contains(&place);
        let mut sites = Self { all: Vec::new(), routes: Vec::new(), broker: None, workers: Vec::new() };
        let here = bywash_manager::here();
        if has(P::Here) {
            sites.all.push(Box::new(InPlace { name: HERE, engine: here.clone() }));
        }
        if has(P::Lanes) {
            sites.all.push(Box::new(Lanes(here)));
        }
        if has(P::Library) {
            sites.all.push(Box::new(InPlace { name: LIBRARY, engine: bywash_manager::library() }));
        }
        if has(P::Queue) {
            let engines = bywash_manager::find(wanted.engines)?.present;
            if !wanted.engines.is_empty() {
                // What "gpu" has found may be a software one.
                engines.iter().for_each(|engine| say!("bywash: {QUEUE} is {}: {}", engine.name(), engine.describe()));
            }
            let manager = Manager::new(ManagerConfig::new(engines))?;
            sites.routes = manager.routes(None, 0.0);
            sites.all.push(Box::new(Queue(manager)));
        }
        if has(P::Broker) {
            sites.find_broker(wanted.socket, named)?;
        }
        if wanted.openssl {
            sites.all.push(Box::new(OpenSsl::find(wanted.cpu)));
        }
        Ok(sites)
    }

    fn find_broker(&mut self, socket: Option<&Path>, named: bool) -> core::result::Result<(), Failure> {
        let path = socket_path(socket);
        if !named && probe(&path).is_err() {
            return Ok(());
        }
        let mut link = Link::connect(&path)?;
        let engines = crate::top::parse(&link.stats(StatsFormat::Json)?)?.engines;
        self.workers.push(link.process());
        self.broker = Some(client(&path, Route::Auto));
        // What it serves may go to any of them.
        let modelled = engines.iter().any(|engine| engine.modelled);
        let engines = listed(engines.iter().map(|engine| engine.name.as_str()));
        self.all.push(Box::new(Broker { client: client(&path, Route::Queue), modelled, engines }));
        Ok(())
    }

    /// Those that have something to show for an algorithm.
    pub(crate) fn offering(&self, algorithm: Algorithm) -> Vec<&dyn Site> {
        self.all.iter().map(|site| &**site).filter(|site| site.offers(algorithm)).collect()
    }

    /// Those that can run one operation after the other, whatever it is.
    pub(crate) fn one_by_one(&self) -> Vec<&dyn Site> {
        self.all.iter().map(|site| &**site).filter(|site| site.name() != LANES).collect()
    }

    /// The place that a program's operations would go to: by the broker's table if there is one, else by this process's.
    pub(crate) fn routed(&self, algorithm: Algorithm, bytes: usize) -> &'static str {
        let (place, queue) = match &self.broker {
            Some(client) => (client.place(algorithm, bytes), BROKER),
            None => (self.routes.get(route_index(algorithm, bytes)).copied().unwrap_or(Place::Here), QUEUE),
        };
        if place == Place::Here { HERE } else { queue }
    }
}

/// Engines in one word.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join("+")
}

fn client(path: &Path, route: Route) -> Client {
    Client::new(Config { socket: Some(path.to_owned()), route, ..Config::default() })
}

/// An engine's session in the calling thread; several operations go to the engine together.
fn on(engine: Arc<dyn Engine>, params: &SessionParams) -> Result<Run<'static>> {
    let (keyed, algorithm): (Box<dyn Keyed>, _) = (engine.open(params)?, params.algorithm());
    Ok(Box::new(move |operations| {
        if let [operation] = operations {
            return tolerate(keyed.run(&mut operation.borrow()), algorithm);
        }
        let mut tasks: Vec<Task<'_>> = operations.iter_mut().map(|operation| Task::new(&*keyed, operation.borrow())).collect();
        engine.run(&mut tasks);
        tasks.into_iter().try_for_each(|task| tolerate(task.outcome, algorithm))
    }))
}

/// One engine in the calling thread.
struct InPlace {
    name: &'static str,
    engine: Arc<dyn Engine>,
}

impl Site for InPlace {
    fn name(&self) -> &str {
        self.name
    }

    fn offers(&self, algorithm: Algorithm) -> bool {
        self.engine.supports(algorithm)
    }

    fn computes_in_the_calling_thread(&self) -> bool {
        true
    }

    fn open(&self, params: &SessionParams, _: Direction) -> Result<Run<'_>> {
        on(self.engine.clone(), params)
    }
}

/// The calling thread with as many operations at once as the engine has lanes for.
struct Lanes(Arc<dyn Engine>);

impl Site for Lanes {
    fn name(&self) -> &str {
        LANES
    }

    fn offers(&self, algorithm: Algorithm) -> bool {
        self.0.supports(algorithm) && self.0.lanes(algorithm) > 1
    }

    fn computes_in_the_calling_thread(&self) -> bool {
        true
    }

    fn batch(&self, algorithm: Algorithm, _: usize) -> usize {
        self.0.lanes(algorithm)
    }

    fn open(&self, params: &SessionParams, _: Direction) -> Result<Run<'_>> {
        on(self.0.clone(), params)
    }
}

struct Queue(Arc<Manager>);

impl Site for Queue {
    fn name(&self) -> &str {
        QUEUE
    }

    fn is_modelled(&self) -> bool {
        self.0.engines().iter().any(|engine| engine.is_modelled())
    }

    fn engines(&self) -> Option<String> {
        Some(listed(self.0.engines().iter().map(|engine| engine.name())))
    }

    fn open(&self, params: &SessionParams, _: Direction) -> Result<Run<'_>> {
        let queued = Queued { manager: self.0.clone(), session: self.0.open(0, params.clone())?, algorithm: params.algorithm() };
        Ok(Box::new(move |operations| queued.run(operations)))
    }
}

struct Queued {
    manager: Arc<Manager>,
    session: SessionId,
    algorithm: Algorithm,
}

impl Queued {
    fn run(&self, operations: &mut [OwnedOperation]) -> Result<()> {
        if let [operation] = operations {
            let outcome = self.manager.run(self.session, &mut operation.borrow()).map(|done| done.written);
            return tolerate(outcome, self.algorithm);
        }
        let (tell, told) = mpsc::channel();
        for (index, operation) in operations.iter().enumerate() {
            let tell = tell.clone();
            // Nobody listens any more once an operation before it has failed.
            let on_done = move |completion| drop(tell.send((index, completion)));
            self.manager.submit(self.session, operation.clone(), Box::new(on_done));
        }
        drop(tell);
        for (index, completion) in told {
            tolerate(completion.outcome.map(|done| done.written), self.algorithm)?;
            operations[index] = completion.operation;
        }
        Ok(())
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        // It fails only for a session that is closed already.
        let _ = self.manager.close(self.session);
    }
}

struct Broker {
    client: Client,
    modelled: bool,
    engines: String,
}

impl Site for Broker {
    fn name(&self) -> &str {
        BROKER
    }

    fn is_modelled(&self) -> bool {
        self.modelled
    }

    fn engines(&self) -> Option<String> {
        Some(self.engines.clone())
    }

    /// A client whose broker goes away works by itself, which is not what is measured here.
    fn confirm(&self, algorithm: Algorithm) -> Result<()> {
        match self.client.counted(algorithm) {
            (0, _) => Ok(()),
            (here, _) => {
                Err(Error::Unavailable { what: format!("{here} operations ran here instead, the broker did not take them; see its log") })
            }
        }
    }

    fn open(&self, params: &SessionParams, _: Direction) -> Result<Run<'_>> {
        let (session, algorithm) = (self.client.session(params.clone())?, params.algorithm());
        Ok(Box::new(move |operations| {
            if let [operation] = operations {
                return tolerate(session.run(&mut operation.borrow()), algorithm);
            }
            let pending: Vec<_> = operations.iter().map(|operation| session.submit(operation.clone())).collect();
            pending.into_iter().zip(operations).try_for_each(|(pending, operation)| {
                *operation = pending.wait()?;
                Ok(())
            })
        }))
    }
}
