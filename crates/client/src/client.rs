//! A process's access to engines.

use crate::config::{Config, Route};
use crate::session::Session;
use crate::usage::Usage;
use bywash_core::route::{ROUTES, look_up};
use bywash_core::{Algorithm, Engine, Place, Result, SessionParams};
use bywash_engine_cpu::CpuEngine;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// A process's access to engines. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    config: Config,
    engine: Arc<dyn Engine>,
    routes: Box<[AtomicU8]>,
    usage: Usage,
}

impl Client {
    /// A client. Never fails for want of a broker: it then works in this process alone and looks for the broker again later.
    pub fn new(config: Config) -> Self {
        Self::with_engine(config, Arc::new(CpuEngine::new()))
    }

    /// A client whose work in place is done by this engine.
    pub fn with_engine(config: Config, engine: Arc<dyn Engine>) -> Self {
        let routes = (0..ROUTES).map(|_| AtomicU8::new(Place::Here as u8)).collect();
        Self(Arc::new(Inner { config, engine, routes, usage: Usage::new() }))
    }

    /// Where an operation of this size would run: one relaxed load, no lock, no allocation.
    #[inline]
    pub fn place(&self, algorithm: Algorithm, bytes: usize) -> Place {
        match self.0.config.route {
            Route::Auto => look_up(&self.0.routes, algorithm, bytes),
            Route::Here => Place::Here,
            Route::Queue => Place::Queue,
        }
    }

    /// Opens a session.
    ///
    /// # Errors
    /// Those of [`Engine::open`].
    pub fn session(&self, params: SessionParams) -> Result<Session> {
        Session::open(self.clone(), params)
    }

    /// Counts work done in place through a [`Stream`](bywash_core::Stream). [`Session::run`] counts its own.
    #[inline]
    pub fn count(&self, algorithm: Algorithm, operations: u64, bytes: u64) {
        self.0.usage.add(algorithm, operations, bytes);
    }

    /// Operations and bytes that this process ran in place.
    pub fn counted(&self, algorithm: Algorithm) -> (u64, u64) {
        self.0.usage.of(algorithm)
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.0.engine
    }
}
