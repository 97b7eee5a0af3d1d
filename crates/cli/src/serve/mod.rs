//! `bywash serve`: the broker, in the foreground.

mod notify;
mod settings;

use crate::args::prefer;
use crate::failure::{Exit, Failure};
use crate::key::open_vault;
use crate::{broker_link, interrupt, terminal};
use bywash_broker::{Broker, BrokerConfig, BrokerHandle, TenantRule};
use bywash_manager::{EngineName, Manager, ManagerConfig, ReloadName};
use bywash_policy::mediator::Prefer;
use bywash_vault::Vault;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
pub(crate) use settings::Policy;
use settings::{Engine, Mode, Quotas, Reload, Settings};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// `bywash serve`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash serve
  bywash serve --allow-uid 33 --metrics 127.0.0.1:9464
  bywash serve --engine board:munetoh-meac32 --engine cpu
  bywash serve --engine fpga --engine cpu --reload predict:trace.csv
  bywash serve --engine board:ixp425 --policy fifo
  bywash serve --engine cpu --engine gpu --prefer cpu-free
  bywash serve --config /etc/bywash/broker.toml --log json

The configuration file is TOML; the command line goes above it. Its keys, all optional:
  socket = \"/run/bywash/broker.sock\"     policy = \"placement\"     drain_seconds = 5
  socket_mode = \"0660\"                   allow_uids = [33]        metrics = \"127.0.0.1:9464\"
  engines = [\"cpu\"]                      allow_gids = [48]        reload = \"tuned\"
  module_first = true
  keys = \"/var/lib/bywash/keys\"          keys_passphrase = FILE   audit = FILE
  [[tenant]]                             who is promised what; the first that fits counts
  match = \"uid:1000\"                     or gid:NUMBER, or program:NAME
  weight = 3                             goal = \"1ms\"
  [quotas]
  clients_per_uid_max = 1024             sessions_per_client_max = 4096
  in_flight_max = 256                    control_rate_max = 20000
  connect_rate_max = 200                 arena_mib_per_uid_max = 4096
  sessions_per_uid_max = 65536

A modelled engine's bytes are computed by the processor, so none is faster live than that: where its
sheet asks for less, live times are the processor's, and only `bywash simulate` shows the sheet's.
`bywash stats` counts such answers as later than modelled. Who decides goes by what they really
took, so such an engine is given little.

SIGTERM, SIGINT and SIGHUP drain: new requests are refused, old ones are finished; a second one, but
for SIGHUP, ends at once. Settings are read at the start alone. BYWASH_LOG=debug logs more.")]
pub(crate) struct Args {
    /// Where clients connect [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The socket's permissions in octal [default: 0600; 0666 with --allow-uid or --allow-gid]
    #[arg(long, value_name = "MODE")]
    socket_mode: Option<Mode>,
    /// A user who may connect besides this one and root; again for more
    #[arg(long, value_name = "UID", value_parser = parse_uid)]
    allow_uid: Vec<u32>,
    /// A group whose members may connect; again for more
    #[arg(long, value_name = "GID")]
    allow_gid: Vec<u32>,
    /// Who decides: placement (shortest expected completion by cost, the default), fifo, mediator (a GPU beside the
    /// processor: packs, cuts, learns the threshold), or one of the schedulers of a single module, with its parameters after a colon; an unknown name lists them all
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// The mediator decides, for a GPU beside the processor, and this counts (cpu-free and energy: whoever takes the least
    /// of it, at most 20 ms and 4 times its own time later); short for --policy mediator:prefer=...
    #[arg(long, value_name = "WHAT", conflicts_with = "policy", value_parser = prefer())]
    prefer: Option<Prefer>,
    /// What computes: cpu, gpu (or gpu:cuda, gpu:vulkan), board:CARD for a modelled card, fpga or fpga:DEVICE for a
    /// modelled FPGA (one that comes along or the file of its sheet); again for more [default: cpu]
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<EngineName>,
    /// Who decides what an FPGA holds: tuned, saved, predict:TRACE (learnt from a recording),
    /// nopredict, lru or fixed:ALGORITHM,... [default: tuned]
    #[arg(long, value_name = "POLICY")]
    reload: Option<ReloadName>,
    /// Serve Prometheus metrics at this loopback address: sums, for every user of this machine
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
    /// Read settings from this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to log, to stderr
    #[arg(long, value_name = "FORM", default_value = "text")]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["text", "json"]))]
    log: String,
    /// Seconds that requests in flight may take to end [default: 5]
    #[arg(long, value_name = "S")]
    drain_seconds: Option<u64>,
    /// The folder of private keys that clients use by name and never see (`bywash key --help`)
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// A file whose first line is the passphrase under which keys are encrypted there [default:
    /// systemd's credential keys-passphrase, if there is one; else keys are stored in plain]
    #[arg(long, value_name = "FILE")]
    keys_passphrase: Option<PathBuf>,
    /// Where uses of keys are logged [default: audit.log in the folder of keys]
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    #[command(flatten)]
    quotas: Quotas,
}

/// Serves until a signal comes.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let file = args.config.as_deref().map(Settings::load).transpose()?.unwrap_or_default();
    let settings = file.under(args.settings());
    log(args.log == "json");
    bywash_protocol::harden_process().iter().for_each(|lacking| tracing::warn!("{lacking}"));
    raise_descriptors();
    let broker = bind(&settings)?;
    if let Some(address) = broker.metrics_address() {
        tracing::info!("metrics at http://{address}/metrics");
    }
    watch_signals(broker.handle())?;
    notify::tell("READY=1");
    let ended = broker.run();
    notify::tell("STOPPING=1");
    ended.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// Who is promised what, by a broker's configuration file.
///
/// # Errors
/// [`Exit::Config`], naming file, line and key; for a file in which nobody is promised anything too.
pub(crate) fn tenant_rules(path: &Path) -> Result<Vec<TenantRule>, Failure> {
    let rules: Vec<TenantRule> = Settings::load(path)?.tenant.iter().map(settings::TenantSettings::rule).collect();
    if rules.is_empty() {
        return Err(Failure::config(format!(
            "{}: no [[tenant]] in it, so nobody is promised anything; see `bywash serve --help`",
            path.display()
        )));
    }
    Ok(rules)
}

impl Args {
    fn settings(&self) -> Settings {
        Settings {
            socket: self.socket.clone(),
            socket_mode: self.socket_mode,
            allow_uids: (!self.allow_uid.is_empty()).then(|| self.allow_uid.clone()),
            allow_gids: (!self.allow_gid.is_empty()).then(|| self.allow_gid.clone()),
            policy: self.policy.clone().or_else(|| self.prefer.as_ref().map(Policy::mediator)),
            engines: (!self.engine.is_empty()).then(|| self.engine.iter().cloned().map(Engine).collect()),
            reload: self.reload.clone().map(Reload),
            module_first: None,
            metrics: self.metrics,
            drain_seconds: self.drain_seconds,
            keys: self.keys.clone(),
            keys_passphrase: self.keys_passphrase.clone(),
            audit: self.audit.clone(),
            tenant: Vec::new(),
            quotas: self.quotas.clone(),
        }
    }
}

fn parse_uid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("a number is expected; ask `id -u {text}` for it"))
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port are expected, such as 127.0.0.1:9464".to_owned())
}

fn bind(settings: &Settings) -> Result<Broker, Failure> {
    let names: Vec<EngineName> = settings.engines.iter().flatten().map(|Engine(name)| name.clone()).collect();
    let mut engines = ManagerConfig::new(bywash_manager::find(&names)?.present);
    if let Some(policy) = &settings.policy {
        engines.policy = policy.kind()?;
    }
    engines.reload = settings.reload.as_ref().map(|Reload(reload)| reload.clone());
    let manager = Manager::new(engines)?;
    manager.notes().iter().for_each(|note| tracing::info!("{note}"));
    manager.engines().iter().for_each(|engine| tracing::info!("computes with '{}': {}", engine.name(), engine.describe()));
    let modelled = manager.engines().iter().filter(|engine| engine.is_modelled());
    modelled.for_each(|engine| tracing::warn!("engine '{}' is modelled: its times are not measurements", engine.name()));
    let socket = broker_link::socket_path(settings.socket.as_deref());
    let mut config = BrokerConfig::new(socket.clone(), manager);
    config.mode = settings.socket_mode.map(|mode| mode.0);
    config.allowed_uids = settings.allow_uids.clone().unwrap_or_default();
    config.allowed_gids = settings.allow_gids.clone().unwrap_or_default();
    config.metrics = settings.metrics;
    config.module_first = settings.module_first.unwrap_or(config.module_first);
    if settings.keys.is_none() {
        let of_keys = [("keys_passphrase", settings.keys_passphrase.is_some()), ("audit", settings.audit.is_some())];
        if let Some((name, _)) = of_keys.iter().find(|(_, is_given)| *is_given) {
            let option = name.replace('_', "-");
            return Err(Failure::config(format!(
                "{name} (--{option}) says nothing without keys: name their folder with --keys, or leave it out"
            )));
        }
    }
    config.vault = settings.keys.as_deref().map(|folder| vault(folder, settings)).transpose()?;
    config.audit = settings.audit.clone();
    config.tenants = settings.tenant.iter().map(settings::TenantSettings::rule).collect();
    settings.quotas.apply(&mut config.quotas);
    if let Some(seconds) = settings.drain_seconds {
        config.drain_bound = Duration::from_secs(seconds);
    }
    Broker::bind(config).map_err(|error| Failure::new(code(&socket), error.to_string()))
}

/// Opens the vault, and says what guards it.
fn vault(folder: &Path, settings: &Settings) -> Result<Arc<Vault>, Failure> {
    let credential = || {
        let file = PathBuf::from(std::env::var_os("CREDENTIALS_DIRECTORY")?).join("keys-passphrase");
        file.exists().then_some(file)
    };
    let passphrase = settings.keys_passphrase.clone().or_else(credential);
    let vault = open_vault(folder, passphrase.as_deref())?;
    let keys = vault.list().len();
    if vault.is_sealed() {
        tracing::info!(keys, "vault in {}, encrypted under its passphrase", folder.display());
    } else {
        tracing::warn!(keys, "vault in {}: keys are stored in plain, guarded by file modes alone; see --keys-passphrase", folder.display());
    }
    if !vault.is_locked() {
        tracing::warn!("keys may reach swap: locking memory is limited; lift it with `ulimit -l unlimited` or LimitMEMLOCK=infinity");
    }
    Ok(Arc::new(vault))
}

/// A socket whose folder may not be written, or made, is a matter of permissions; everything else is a failure.
fn code(socket: &Path) -> Exit {
    let folder = socket.ancestors().skip(1).take(2).find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
        Err(rustix::io::Errno::ACCESS) => Exit::Permission,
        _ => Exit::Failed,
    }
}

/// A client takes a descriptor, and the usual soft limit of 1024 is less than one user may have. The limit is low for `select`'s sake, which
/// nothing here uses.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::warn!("descriptors stay limited to {:?}: {error}", limit.current);
    }
}

fn watch_signals(handle: BrokerHandle) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot watch for signals: {error}; see ulimit -n"));
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(failed)?;
    // That of a closed terminal; whoever asks by it for the settings to be read again has the broker end, and not in the midst of requests. Not under nohup.
    if !interrupt::ignored()(SIGHUP) {
        signals.add_signal(SIGHUP).map_err(failed)?;
    }
    let watch = move || {
        let mut arrived = signals.forever();
        if arrived.next().is_some() {
            tracing::info!("draining; another signal ends at once");
            handle.shutdown();
        }
        // A terminal that closes may say so twice: its shell's word and the kernel's.
        if arrived.any(|signal| signal != SIGHUP) {
            std::process::exit(i32::from(Exit::Failed as u8));
        }
    };
    std::thread::Builder::new().name("bywash-signals".into()).spawn(watch).map(drop).map_err(failed)
}

fn log(json: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("BYWASH_LOG").unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    if json {
        builder.json().flatten_event(true).init();
    } else {
        builder.with_ansi(terminal::colour_on_stderr()).init();
    }
}
