//! The load: threads that connect, shake hands, fetch, and start over.

use crate::args::{Args, Group, Tls};
use crate::arrivals::Arrivals;
use crate::fetch::{Expected, Failure, get};
use crate::report::Report;
use crate::short_rsa;
use rustix::time::{ClockId, clock_gettime};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, Stream};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BUFFER_BYTES: usize = 64 * 1024;

/// What every thread is to do.
pub(crate) struct Plan {
    server: SocketAddr,
    host: String,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    connections: u32,
    rate: Option<f64>,
    seconds: Option<f64>,
    count: Option<u64>,
    path: Option<String>,
    requests: u64,
    expected: Expected,
    timeout: Duration,
}

impl Plan {
    /// Reads what the arguments name.
    pub(crate) fn new(args: &Args) -> Result<Self, String> {
        let name = ServerName::try_from(args.sni.clone()).map_err(|error| format!("--sni '{}': {error}", args.sni))?;
        let expected = match (&args.expect, args.expect_sha256) {
            (Some(file), _) => Expected::Bytes(std::fs::read(file).map_err(|error| format!("--expect {}: {error}", file.display()))?),
            (None, Some(digest)) => Expected::Sha256(digest),
            (None, None) => Expected::Anything,
        };
        Ok(Self {
            server: args.connect,
            host: args.sni.clone(),
            name,
            config: Arc::new(config(args)?),
            connections: args.connections,
            rate: args.rate,
            seconds: args.seconds,
            count: args.count,
            path: args.path.clone(),
            requests: args.requests,
            expected,
            timeout: Duration::from_secs_f64(args.timeout),
        })
    }
}

fn config(args: &Args) -> Result<ClientConfig, String> {
    if args.short_rsa && args.tls != Tls::V12 {
        return Err(
            "--short-rsa: TLS 1.3 signs by RSA-PSS, which this client's library does not verify below 2048 bits; add --tls 1.2".into()
        );
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca", &args.ca)? {
        roots.add(certificate).map_err(|error| format!("--ca {}: {error}", args.ca.display()))?;
    }
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    if args.short_rsa {
        provider.signature_verification_algorithms = short_rsa::ALGORITHMS;
    }
    if let Some(group) = args.group {
        provider.kx_groups = vec![match group {
            Group::X25519 => kx_group::X25519,
            Group::Secp256r1 => kx_group::SECP256R1,
            Group::Secp384r1 => kx_group::SECP384R1,
        }];
    }
    let version = if args.tls == Tls::V12 { &rustls::version::TLS12 } else { &rustls::version::TLS13 };
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match (&args.cert, &args.key) {
        (Some(chain), Some(key)) => {
            let private = PrivateKeyDer::from_pem_file(key).map_err(|error| format!("--key {}: {error}", key.display()))?;
            let own = builder.with_client_auth_cert(certificates("--cert", chain)?, private);
            own.map_err(|error| format!("--cert {}: {error}", chain.display()))?
        }
        _ => builder.with_no_client_auth(),
    };
    config.resumption = if args.resume { Resumption::in_memory_sessions(256) } else { Resumption::disabled() };
    Ok(config)
}

fn certificates(option: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |reason: String| format!("{option} {}: {reason}", file.display());
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found = found.map_err(|error| unreadable(error.to_string()))?;
    if found.is_empty() { Err(unreadable("no certificate in it".to_owned())) } else { Ok(found) }
}

/// Gives each connection its turn: when it is due, or `None` if there is none left.
struct Turns<'a> {
    plan: &'a Plan,
    start: Instant,
    begun: AtomicU64,
    arrivals: Option<Arrivals>,
}

impl Turns<'_> {
    /// Comes back when the next connection is due.
    fn next(&self) -> Option<Instant> {
        if self.plan.count.is_some_and(|count| self.begun.fetch_add(1, Ordering::Relaxed) >= count) {
            return None;
        }
        let due = match &self.arrivals {
            Some(arrivals) => self.start + arrivals.next(),
            None => Instant::now(),
        };
        if self.plan.seconds.is_some_and(|seconds| due.duration_since(self.start).as_secs_f64() >= seconds) {
            return None;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        Some(due)
    }
}

/// Carries the plan out.
pub(crate) fn run(plan: &Plan) -> Report {
    let start = Instant::now();
    let turns = Turns { plan, start, begun: AtomicU64::new(0), arrivals: plan.rate.map(Arrivals::new) };
    let mut total = Report::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.connections).map(|_| scope.spawn(|| lane(plan, &turns))).collect();
        for thread in threads {
            match thread.join() {
                Ok(report) => total.add(&report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    total.elapsed = start.elapsed();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    total.cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
    total
}

/// One connection after the other.
fn lane(plan: &Plan, turns: &Turns<'_>) -> Report {
    // A sleeper's timer is put off by 50 us otherwise, and its connection with it. Should this fail, it is.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut report = Report::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Some(due) = turns.next() {
        match connection(plan, due, &mut report, &mut buffer) {
            Ok(()) => report.connection(due.elapsed()),
            Err(failure) => report.failed(failure),
        }
    }
    report
}

fn connection(plan: &Plan, due: Instant, report: &mut Report, buffer: &mut [u8]) -> Result<(), Failure> {
    let mut socket = TcpStream::connect_timeout(&plan.server, plan.timeout).map_err(|error| Failure::from_io("connect", &error))?;
    let set = |socket: &TcpStream| -> std::io::Result<()> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(plan.timeout))?;
        socket.set_write_timeout(Some(plan.timeout))
    };
    set(&socket).map_err(|error| Failure::from_io("connect", &error))?;
    let mut tls = ClientConnection::new(plan.config.clone(), plan.name.clone())
        .map_err(|error| Failure::Broken("TLS error in handshake", error.to_string()))?;
    while tls.is_handshaking() {
        tls.complete_io(&mut socket).map_err(|error| Failure::from_io("handshake", &error))?;
    }
    report.handshake(due.elapsed(), tls.handshake_kind() == Some(HandshakeKind::Resumed));
    if let Some(suite) = tls.negotiated_cipher_suite() {
        report.suite(suite.suite().as_str().unwrap_or("unknown"));
    }
    let fetched = fetch_all(plan, &mut tls, &mut socket, report, buffer);
    tls.send_close_notify();
    // The peer may have closed already, as HTTP asked it to: not being able to say goodbye is no failure.
    let _ = tls.write_tls(&mut socket);
    fetched
}

fn fetch_all(
    plan: &Plan,
    tls: &mut ClientConnection,
    socket: &mut TcpStream,
    report: &mut Report,
    buffer: &mut [u8],
) -> Result<(), Failure> {
    let Some(path) = &plan.path else { return Ok(()) };
    let mut stream = Stream::new(tls, socket);
    for request in 1..=plan.requests {
        let start = Instant::now();
        let bytes = get(&mut stream, &plan.host, path, request == plan.requests, &plan.expected, buffer)?;
        report.request(start.elapsed(), bytes);
    }
    Ok(())
}
