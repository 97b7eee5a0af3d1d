//! `bywash run`: a program, started with its cryptography routed.
//!
//! The program is told by an `openssl.cnf` of its own ([`workspace`]) to load our provider first, and by `BYWASH_*` where the broker is
//! ([`host`]). While it runs, signals are passed on ([`child`]); when it ends, its status becomes ours, and one line says what ran
//! where ([`summary`]).

mod child;
mod dds;
mod hooked;
mod host;
mod summary;
mod supervised;
pub(crate) mod workspace;

use crate::doctor;
use crate::failure::{Exit, Failure};
use crate::files::hooked::{FilesBy, Opened, open};
use crate::files::private::{self, Private};
use crate::files::stored;
use crate::openssl_conf::{ProviderEntry, generate, user_conf};
use crate::provider;
use crate::serve::Policy;
use crate::terminal::say;
use bywash_client::Route;
use bywash_dds::Reuse;
use bywash_manager::{EngineName, ReloadName};
use bywash_policy::mediator::Prefer;
use host::Host;
pub(crate) use host::NO_BROKER;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use summary::Account;
use workspace::Workspace;

/// What the dynamic linker loads before a program's own libraries.
const LD_PRELOAD: &str = "LD_PRELOAD";

/// `bywash run`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash run -- curl https://localhost/
  bywash run -- nginx -g 'daemon off;'
  bywash run --route queue -- openssl speed -evp aes-256-ctr
  bywash run --engine board:munetoh-meac32 -- apache2 -DFOREGROUND
  bywash run --engine fpga --engine cpu --route queue -- ./server
  bywash run --devcrypto -- openssl speed -engine devcrypto -evp aes-128-cbc
  bywash run --static -- ./statically-linked
  bywash run --dds -- ros2 run demo_nodes_cpp talker
  bywash run --files ~/vault -k my.key -- git -C ~/vault/notes commit
  bywash run --files ~/vault --files-by hook -k my.key -- sort -o ~/vault/b ~/vault/a
  bywash run --report report.json --trace trace.csv -- ./server

Without a running broker the run hosts one of its own, which ends with it. A trace is always of
the run alone, and so are engines that are named.

Exit code: the program's own, 128 + n if signal n ended it; 125 if Bywash failed before it
was started, 126 if it cannot be executed, 127 if there is no such command.")]
pub(crate) struct Args {
    /// Who decides where operations run: the routing table (auto), or always the program's own
    /// place (here), or always the broker's queue (queue); also by $BYWASH_ROUTE. Messages of AEADs
    /// that come in pieces run in the program's own place on every route
    #[arg(long, value_name = "ROUTE", default_value = "auto", env = "BYWASH_ROUTE", hide_env = true)]
    route: Route,
    /// Join the broker at this socket [default: $BYWASH_SOCKET, else the system's or the
    /// session's, if one answers]
    #[arg(long, value_name = "PATH", conflicts_with = "trace")]
    socket: Option<PathBuf>,
    /// What the run's own broker computes with: cpu, gpu (or gpu:cuda, gpu:vulkan), board:CARD for a modelled card, or
    /// fpga or fpga:DEVICE for a modelled FPGA (one that comes along or the file of its sheet); again for
    /// more [default: cpu]
    #[arg(long, value_name = "ENGINE", conflicts_with = "socket")]
    engine: Vec<EngineName>,
    /// Who decides which request is next there, as `bywash serve --policy` [default: placement]
    #[arg(long, value_name = "POLICY", requires = "engine")]
    policy: Option<Policy>,
    /// The mediator decides there, and this counts: latency, throughput, cpu-free or energy
    #[arg(long, value_name = "WHAT", requires = "engine", conflicts_with = "policy")]
    prefer: Option<Prefer>,
    /// Who decides what an FPGA holds: tuned, saved, predict:TRACE (learnt from a recording),
    /// nopredict, lru or fixed:ALGORITHM,... [default: tuned]
    #[arg(long, value_name = "POLICY", requires = "engine")]
    reload: Option<ReloadName>,
    /// The OpenSSL provider's shared object [default: $BYWASH_PROVIDER, else the one near this
    /// executable]
    #[arg(long, value_name = "FILE")]
    provider: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Leave event-driven servers as they are: every handshake's operations are computed where they
    /// arise, not in company; also by BYWASH_ASYNC=off
    #[arg(long)]
    no_async: bool,
    /// Give the program and what it starts a /dev/crypto (OCF, cryptodev), where the system has none
    #[arg(long, group = "device")]
    devcrypto: bool,
    /// Serve /dev/crypto by answering the program's system calls, not by a library in it: for
    /// statically linked programs, and those of Go and Rust
    #[arg(long = "static", group = "device", conflicts_with = "devcrypto")]
    statically: bool,
    /// Say in words what was wrong with a request to /dev/crypto
    #[arg(long, requires = "device")]
    explain: bool,
    /// Reuse sessions under the OpenSSL calls of Fast DDS (ROS 2) in the program and what it starts.
    /// For a program that is linked to libfastrtps or libfastdds this is so without saying
    #[arg(long)]
    dds: bool,
    /// Show the program and what it starts the files in this volume, in its place; nobody else sees
    /// them. `bywash mount --init` makes a volume
    #[arg(long, value_name = "VOLUME")]
    files: Option<PathBuf>,
    /// How they are shown: by a mount of its own (mount), or, without FUSE, by answering its system
    /// calls (hook: no locks, memory maps, programs or working folders in the volume) [default: mount]
    #[arg(
        long,
        value_name = "HOW",
        default_value = "mount",
        hide_default_value = true,
        hide_possible_values = true,
        requires = "files",
        conflicts_with = "statically"
    )]
    files_by: FilesBy,
    #[command(flatten)]
    keys: crate::files::KeyArgs,
    /// No summary and no notes
    #[arg(long, short)]
    quiet: bool,
    /// Write the summary as JSON to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Record the run's requests to this file, as `bywash record` does
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A run as it is to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) route: Route,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) engines: Vec<EngineName>,
    pub(crate) policy: Option<Policy>,
    pub(crate) reload: Option<ReloadName>,
    pub(crate) provider: Option<PathBuf>,
    pub(crate) no_async: bool,
    pub(crate) devcrypto: bool,
    /// Session reuse under Fast DDS, also where the program itself is not linked to it.
    pub(crate) dds: bool,
    /// `/dev/crypto` by answering system calls.
    pub(crate) statically: bool,
    /// Whether the run was for a volume's files: then no cryptography of the program's own is expected.
    pub(crate) has_files: bool,
    pub(crate) explain: bool,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) report: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) command: Vec<OsString>,
}

impl Plan {
    /// Whether programs have a `/dev/crypto` of ours.
    fn has_device(&self) -> bool {
        self.devcrypto || self.statically
    }
}

/// Runs the program.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let Args {
        route,
        socket,
        engine,
        policy,
        prefer,
        reload,
        provider,
        no_async,
        devcrypto,
        dds,
        statically,
        explain,
        json,
        quiet,
        report,
        trace,
        command,
        files,
        files_by,
        keys,
    } = args;
    if files.is_none() && !keys.is_empty() {
        return Err(Failure::new(Exit::RunFailed, "a key or passphrase opens a volume: name it with --files VOLUME"));
    }
    // First of all: there must be no thread yet.
    let by = |how: FilesBy| files.as_deref().filter(|_| *files_by == how);
    let before = |failure: Failure| Failure { exit: Exit::RunFailed, ..failure };
    let entered = by(FilesBy::Mount).map(|files| private::enter(files, keys)).transpose().map_err(before)?;
    let own = [("--report", report.clone()), ("--trace", trace.clone()), ("TMPDIR", Some(std::env::temp_dir()))];
    let own: Vec<_> = own.into_iter().filter_map(|(what, path)| Some((what, path?))).collect();
    let opened = by(FilesBy::Hook).map(|files| open(files, keys, &own)).transpose().map_err(before)?;
    let plan = Plan {
        route: *route,
        socket: socket.clone(),
        engines: engine.clone(),
        policy: policy.clone().or_else(|| prefer.as_ref().map(Policy::mediator)),
        reload: reload.clone(),
        provider: provider.clone(),
        no_async: *no_async,
        devcrypto: *devcrypto,
        dds: *dds,
        statically: *statically,
        has_files: files.is_some(),
        explain: *explain,
        json: *json,
        quiet: *quiet,
        report: report.clone(),
        trace: trace.clone(),
        command: command.clone(),
    };
    let outcome = execute_on(&plan, opened);
    stored::worse(outcome, entered.map_or(Ok(()), Private::leave))
}

/// Runs a program as planned; gives its status.
pub(crate) fn execute(plan: &Plan) -> Result<ExitCode, Failure> {
    execute_on(plan, None)
}

/// The same; the program sees a volume by way of its system calls, if there is one.
fn execute_on(plan: &Plan, opened: Option<Opened>) -> Result<ExitCode, Failure> {
    let before = |failure: Failure| failure.exiting(Exit::RunFailed);
    let workspace = Workspace::new().map_err(before)?;
    let mut notes = Vec::new();
    if let Some(path) = &plan.report {
        is_writable(path).map_err(|error| before(Failure::file("write", path, &error)))?;
    }
    let module = provider::find(plan.provider.as_deref()).map_err(before)?;
    let host = Host::find(plan, &workspace, &mut notes).map_err(before)?;
    let mut command = prepare(plan, module, &workspace, &host.socket, &mut notes).map_err(before)?;
    let counts = dds::is_wanted(plan).then(|| dds::begin(&workspace)).transpose().map_err(before)?;
    if let Some(counts) = &counts {
        command.env("BYWASH_DDS_COUNTS", counts);
    }
    if !plan.quiet && !plan.json {
        notes.iter().for_each(|note| say!("bywash: note: {note}"));
    }
    let status = match opened {
        Some(opened) => hooked::run(&mut command, plan, opened),
        None if plan.statically => supervised::run(&mut command, plan, &host),
        None => child::run(&mut command),
    };
    let finished = host.finish();
    // What became of the program comes first; a summary that cannot be had is worth a line, not the status.
    let status = status?;
    let reuse = counts.as_deref().and_then(dds::read);
    let told = match finished {
        Ok((account, traced)) => tell(plan, status, Ok(&account), reuse.as_ref(), traced.as_deref(), &notes),
        Err(failure) => tell(plan, status, Err(&failure), reuse.as_ref(), None, &notes),
    };
    if let Err(failure) = told {
        say!("bywash: {failure}");
    }
    if let Some(line) =
        reuse.and_then(|reuse| dds::summary(&reuse, plan, dds::Setting::of_environment())).filter(|_| !plan.quiet && !plan.json)
    {
        say!("bywash: {line}");
    }
    Ok(ExitCode::from(status))
}

/// Whether a file could be written, as far as that can be told without making or opening it: it may be a pipe.
fn is_writable(path: &Path) -> std::io::Result<()> {
    let asked = match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
        }
        Err(error) => return Err(error),
        Ok(found) if found.is_dir() => return Err(rustix::io::Errno::ISDIR.into()),
        Ok(_) => path,
    };
    Ok(rustix::fs::access(asked, rustix::fs::Access::WRITE_OK)?)
}

fn prepare(plan: &Plan, module: PathBuf, workspace: &Workspace, socket: &Path, notes: &mut Vec<String>) -> Result<Command, Failure> {
    let route = plan.route.name();
    let socket_text = socket.to_string_lossy().into_owned();
    let settings = vec![("socket", socket_text), ("route", route.to_owned()), ("run", workspace.token().to_owned())];
    let preload = preload(plan, &module, notes);
    let generated = generate(user_conf()?.as_ref(), &ProviderEntry { module, settings });
    notes.extend(generated.notes);
    let conf = workspace.write_conf(&generated.text)?;
    let mut command = Command::new(&plan.command[0]);
    command.args(&plan.command[1..]).env("OPENSSL_CONF", conf);
    command.env("BYWASH_SOCKET", socket).env("BYWASH_ROUTE", route).env("BYWASH_RUN", workspace.token());
    if let Some(preload) = preload {
        command.env(LD_PRELOAD, preload);
    }
    if plan.explain {
        command.env("BYWASH_EXPLAIN", "1");
    }
    Ok(command)
}

/// The value of `LD_PRELOAD` with our libraries added to what is there, as far as they are wanted. The one for `/dev/crypto` only for who asks: it would make every
/// process of a run start some 0.1 ms later.
fn preload(plan: &Plan, provider: &Path, notes: &mut Vec<String>) -> Option<OsString> {
    let mut list = std::env::var_os(LD_PRELOAD).unwrap_or_default();
    let before = list.len();
    if !(plan.no_async || std::env::var_os("BYWASH_ASYNC").is_some_and(|value| value == "off")) {
        let without = "handshakes of event-driven servers are computed one by one";
        notes.extend(add(&mut list, provider, provider::ASYNC, without).err());
    }
    if plan.devcrypto {
        notes.extend(add(&mut list, provider, provider::CRYPTODEV, "there is no /dev/crypto but the system's").err());
        if doctor::is_static(&plan.command[0]) {
            let name = plan.command[0].display();
            notes.push(format!("{name} is statically linked, so no library gives it a /dev/crypto: bywash run --static -- {name} ..."));
        }
    }
    if dds::is_wanted(plan) {
        notes.extend(add(&mut list, provider, provider::FASTDDS, "Fast DDS derives and keys for every piece").err());
    }
    (list.len() > before).then_some(list)
}

/// Adds a library to the list; or says what is to be expected without it.
fn add(list: &mut OsString, provider: &Path, file: &str, without: &str) -> Result<(), String> {
    let Some(library) = provider::preload(provider, file) else { return Err(format!("{file} is not beside the provider: {without}")) };
    // ld.so(8) splits the list at these and knows no way to quote them.
    if library.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
        return Err(format!("{} cannot be preloaded, its path holds a space or a colon: {without}", library.display()));
    }
    if !list.is_empty() {
        list.push(":");
    }
    list.push(library);
    Ok(())
}

/// Without an account the report says why; it has the notes that were to be made before the program began.
fn tell(
    plan: &Plan,
    status: u8,
    account: Result<&Account, &Failure>,
    reuse: Option<&Reuse>,
    traced: Option<&str>,
    notes: &[String],
) -> Result<(), Failure> {
    let command: Vec<_> = plan.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut report = serde_json::json!({ "command": command, "status": status, "account": account.ok() });
    if let Err(failure) = account {
        report["no_account"] = failure.to_string().into();
    }
    if !notes.is_empty() {
        report["notes"] = notes.into();
    }
    if let Some(reuse) = reuse {
        report["dds"] = serde_json::json!(reuse);
    }
    let report = serde_json::to_string_pretty(&report).map_err(|error| Failure::failed(error.to_string()))?;
    if let Some(path) = &plan.report {
        std::fs::write(path, format!("{report}\n")).map_err(|error| Failure::file("write", path, &error))?;
    }
    if plan.json {
        say!("{report}");
    } else if !plan.quiet {
        match account {
            Ok(account) if account.processes == 0 && plan.has_files => {}
            Ok(account) if account.processes == 0 && !plan.has_device() && doctor::names_the_device(&plan.command[0]) => {
                say!(
                    "bywash: nothing was routed: {0} asks for /dev/crypto, and this run has none; bywash run --devcrypto -- {0} ...",
                    command[0]
                );
            }
            Ok(account) => say!("bywash: {}", account.summary(&command[0])),
            Err(failure) => say!("bywash: no summary: {failure}"),
        }
    }
    if let Some(traced) = traced.filter(|_| !plan.quiet) {
        say!("bywash: {traced}");
    }
    Ok(())
}
