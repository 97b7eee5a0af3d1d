//! What a broker is told when it is made.

use crate::tenants::TenantRule;
use bywash_manager::Manager;
use bywash_protocol::Geometry;
use bywash_vault::Vault;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What reaching a broker and coming back is taken to cost where it was not measured: 10 us.
pub const HANDOVER_NS: f64 = 10_000.0;

/// Everything a broker is told. Start from [`BrokerConfig::new`] and change what differs.
#[derive(Clone)]
pub struct BrokerConfig {
    /// Where clients connect.
    pub socket: PathBuf,
    /// Who computes.
    pub manager: Arc<Manager>,
    /// Mode of the socket; `None` chooses 0600 where only this user may connect, else 0666 (the kernel's word on the peer decides).
    pub mode: Option<u32>,
    /// Users who may connect besides this one and root.
    pub allowed_uids: Vec<u32>,
    /// Groups whose members may connect.
    pub allowed_gids: Vec<u32>,
    /// Admits any user who says this in `Hello`: for the private broker of one run.
    pub run_token: Option<String>,
    /// Keys that clients use by name and never see.
    pub vault: Option<Arc<Vault>>,
    /// Where uses of these keys are logged; `None` is `audit.log` in the vault's folder.
    pub audit: Option<PathBuf>,
    /// Who is promised what; the first rule that fits a client counts, and one that none fits is a [`Tenant::default`](bywash_manager::Tenant).
    pub tenants: Vec<TenantRule>,
    /// Limits.
    pub quotas: Quotas,
    /// Sizes of each client's region.
    pub geometry: Geometry,
    /// How ring threads wait.
    pub waiting: Waiting,
    /// Whether the thread of an engine that computes for one session at a time goes before other programs' on the processor (`SCHED_FIFO`), where the kernel grants
    /// that. It steps back for a while, longer each time, when it uses most of a processor.
    pub module_first: bool,
    /// Where to serve metrics over HTTP; a loopback address.
    pub metrics: Option<SocketAddr>,
    /// Nanoseconds that a client needs to reach the broker and come back, for the routing table; `None` takes what `bywash calibrate --full` has
    /// measured, else [`HANDOVER_NS`].
    pub handover_ns: Option<f64>,
    /// How often a client that says nothing is looked for: a connection whose process has ended stays as long as a child of it has the socket.
    pub silence: Duration,
    /// How long requests in flight may take to end at shutdown.
    pub drain_bound: Duration,
}

impl BrokerConfig {
    /// The defaults: this user and root, default quotas, no HTTP.
    pub fn new(socket: PathBuf, manager: Arc<Manager>) -> Self {
        Self {
            socket,
            manager,
            mode: None,
            allowed_uids: Vec::new(),
            allowed_gids: Vec::new(),
            run_token: None,
            vault: None,
            audit: None,
            tenants: Vec::new(),
            quotas: Quotas::default(),
            geometry: Geometry::default(),
            waiting: Waiting::default(),
            module_first: true,
            metrics: None,
            handover_ns: None,
            silence: Duration::from_secs(600),
            drain_bound: Duration::from_secs(5),
        }
    }

    /// What a client needs to reach the broker and come back, in nanoseconds.
    pub fn reach_ns(&self) -> f64 {
        let measured = || self.manager.costs_here().and_then(|costs| costs.reach_broker_ns);
        self.handover_ns.or_else(measured).unwrap_or(HANDOVER_NS)
    }

    pub(crate) fn socket_mode(&self) -> u32 {
        let private = self.allowed_uids.is_empty() && self.allowed_gids.is_empty() && self.run_token.is_none();
        self.mode.unwrap_or(if private { 0o600 } else { 0o666 })
    }
}

/// Limits on what clients may hold. Each refusal names the limit and the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Connections of one user.
    pub clients_per_uid_max: u32,
    /// Open sessions of one client.
    pub sessions_per_client_max: u32,
    /// Open sessions of all clients of one user: each keeps a key, of up to 4 KiB, and what an engine has made of it.
    pub sessions_per_uid_max: u32,
    /// Requests of one client in flight.
    pub in_flight_max: u32,
    /// Control messages of one client a second.
    pub control_rate_max: u32,
    /// Connections of one user a second, once as many as it may have at a time have been made.
    pub connect_rate_max: u32,
    /// Mebibytes of all arenas of one user.
    pub arena_mib_per_uid_max: u32,
    /// How long a user whose processes break the rules again and again stays out, at most. Zero lets it in at once.
    pub back_off_max: Duration,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            clients_per_uid_max: 1024,
            sessions_per_client_max: 4096,
            sessions_per_uid_max: 65_536,
            in_flight_max: 256,
            control_rate_max: 20_000,
            connect_rate_max: 200,
            arena_mib_per_uid_max: 4096,
            back_off_max: Duration::from_secs(5),
        }
    }
}

/// How a ring thread waits for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Spin this long while requests have lately been arriving, else sleep.
    Adaptive(Duration),
    /// Spin this long each time, then sleep.
    Spin(Duration),
    /// Sleep at once.
    Block,
}

impl Default for Waiting {
    fn default() -> Self {
        Self::Adaptive(Duration::from_micros(50))
    }
}
