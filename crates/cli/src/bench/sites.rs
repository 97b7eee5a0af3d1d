//! The places: here, here in lanes, in this process's queue, at the broker.

use super::measure::{Site, Work};
use super::openssl::OpenSsl;
use crate::failure::Failure;
use bywash_client::{Client, Config, Route, Session};
use bywash_core::route::route_index;
use bywash_core::{Algorithm, Data, Engine, Error, Keyed, Operation, Place, Result, SessionParams, Task};
use bywash_manager::{EngineName, Manager, ManagerConfig, SessionId};
use std::path::Path;
use std::sync::Arc;

/// The name of work in the calling thread.
const HERE: &str = "here";
/// The name of work in the calling thread, several operations side by side.
const LANES: &str = "lanes";
/// The name of work by way of a manager in this process.
const QUEUE: &str = "queue";
/// The name of work by way of the running broker.
const BROKER: &str = "broker";

/// All places, and who would choose among them.
pub(crate) struct Sites {
    pub(crate) all: Vec<Box<dyn Site>>,
    routes: Vec<Place>,
    broker: Option<Client>,
}

impl Sites {
    /// The calling thread alone: one by one, by lanes, and the system's OpenSSL.
    pub(crate) fn of_this_thread() -> Self {
        let engine = bywash_manager::here();
        let all: Vec<Box<dyn Site>> = vec![Box::new(Here(engine.clone())), Box::new(Lanes(engine)), Box::new(OpenSsl)];
        Self { all, routes: Vec::new(), broker: None }
    }

    /// Those that have something to show for an algorithm.
    pub(crate) fn offering(&self, algorithm: Algorithm) -> Vec<&dyn Site> {
        self.all.iter().map(|site| &**site).filter(|site| site.offers(algorithm)).collect()
    }

    /// Looks for them; a broker that does not answer is left out.
    pub(crate) fn find(socket: Option<&Path>, engines: &[EngineName]) -> core::result::Result<Self, Failure> {
        let manager = Manager::new(ManagerConfig::new(bywash_manager::find(engines)?.present))?;
        let routes = manager.routes(None, 0.0);
        let mut all: Vec<Box<dyn Site>> =
            vec![Box::new(Here(bywash_manager::here())), Box::new(Lanes(bywash_manager::here())), Box::new(Queue(manager))];
        let path = crate::broker_link::socket_path(socket);
        let broker = crate::broker_link::probe(&path).is_ok().then(|| client(&path, Route::Auto));
        if broker.is_some() {
            all.push(Box::new(Broker(client(&path, Route::Queue))));
        }
        Ok(Self { all, routes, broker })
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

fn client(path: &Path, route: Route) -> Client {
    Client::new(Config { socket: Some(path.to_owned()), route, ..Config::default() })
}

struct Here(Arc<dyn Engine>);

impl Site for Here {
    fn name(&self) -> &str {
        HERE
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>> {
        Ok(Box::new(InPlace(self.0.open(params)?)))
    }
}

struct InPlace(Box<dyn Keyed>);

impl Work for InPlace {
    fn run(&self, operation: &mut Operation<'_>) -> Result<()> {
        self.0.run(operation).map(drop)
    }
}

/// The calling thread with as many operations at once as the engine has lanes for.
struct Lanes(Arc<dyn Engine>);

impl Site for Lanes {
    fn name(&self) -> &str {
        LANES
    }

    fn offers(&self, algorithm: Algorithm) -> bool {
        algorithm.is_public_key() && self.0.lanes(algorithm) > 1
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>> {
        let lanes = self.0.lanes(params.algorithm());
        Ok(Box::new(SideBySide { engine: self.0.clone(), keyed: self.0.open(params)?, lanes }))
    }
}

struct SideBySide {
    engine: Arc<dyn Engine>,
    keyed: Box<dyn Keyed>,
    lanes: usize,
}

/// The longest output of a public-key operation: an RSA modulus of 4096 bits.
const OUTPUT_MAX: usize = 512;

impl Work for SideBySide {
    fn run(&self, operation: &mut Operation<'_>) -> Result<()> {
        let Data::Copy { input, .. } = &operation.data else {
            return Err(Error::Unavailable { what: "lanes take input and output apart".into() });
        };
        let mut outputs = vec![[0; OUTPUT_MAX]; self.lanes];
        let task = |output| {
            let data = Data::Copy { input, output };
            Task::new(&*self.keyed, Operation { direction: operation.direction, iv: &[], aad: &[], data, tag: &mut [] })
        };
        let mut tasks: Vec<_> = outputs.iter_mut().map(|output| task(output)).collect();
        self.engine.run(&mut tasks);
        tasks.into_iter().try_for_each(|task| task.outcome.map(drop))
    }

    fn width(&self) -> usize {
        self.lanes
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

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>> {
        let session = self.0.open(0, params.clone())?;
        Ok(Box::new(Queued { manager: self.0.clone(), session }))
    }
}

struct Queued {
    manager: Arc<Manager>,
    session: SessionId,
}

impl Work for Queued {
    fn run(&self, operation: &mut Operation<'_>) -> Result<()> {
        self.manager.run(self.session, operation).map(drop)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        // It fails only for a session that is closed already.
        let _ = self.manager.close(self.session);
    }
}

struct Broker(Client);

impl Site for Broker {
    fn name(&self) -> &str {
        BROKER
    }

    /// A client whose broker goes away works by itself, which is not what is measured here.
    fn confirm(&self, algorithm: Algorithm) -> Result<()> {
        match self.0.counted(algorithm) {
            (0, _) => Ok(()),
            (here, _) => {
                Err(Error::Unavailable { what: format!("{here} operations ran here instead, the broker did not take them; see its log") })
            }
        }
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>> {
        Ok(Box::new(Remote(self.0.session(params.clone())?)))
    }
}

struct Remote(Session);

impl Work for Remote {
    fn run(&self, operation: &mut Operation<'_>) -> Result<()> {
        self.0.run(operation).map(drop)
    }
}
