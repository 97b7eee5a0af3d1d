//! The load: threads that connect, shake hands, fetch, and start over.

use crate::args::{Args, Tls};
use crate::fetch::{Expected, Failure, get};
use crate::report::Report;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, Stream};
use std::net::{SocketAddr, TcpStream};
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
            config: Arc::new(config(&args.ca, args.tls, args.resume)?),
            connections: args.connections,
            seconds: args.seconds,
            count: args.count,
            path: args.path.clone(),
            requests: args.requests,
            expected,
            timeout: Duration::from_secs_f64(args.timeout),
        })
    }
}

fn config(ca: &Path, tls: Tls, resume: bool) -> Result<ClientConfig, String> {
    let unreadable = |reason: String| format!("--ca {}: {reason}", ca.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("no certificate in it".to_owned()));
    }
    let version = if tls == Tls::V12 { &rustls::version::TLS12 } else { &rustls::version::TLS13 };
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = if resume { Resumption::in_memory_sessions(256) } else { Resumption::disabled() };
    Ok(config)
}

/// Carries the plan out.
pub(crate) fn run(plan: &Plan) -> Report {
    let start = Instant::now();
    let begun = AtomicU64::new(0);
    let goes_on = || match (plan.count, plan.seconds) {
        (Some(count), _) => begun.fetch_add(1, Ordering::Relaxed) < count,
        (None, seconds) => seconds.is_some_and(|seconds| start.elapsed().as_secs_f64() < seconds),
    };
    let mut total = Report::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.connections).map(|_| scope.spawn(|| lane(plan, goes_on))).collect();
        for thread in threads {
            match thread.join() {
                Ok(report) => total.add(&report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    total.elapsed = start.elapsed();
    total
}

/// One connection after the other.
fn lane(plan: &Plan, goes_on: impl Fn() -> bool) -> Report {
    let mut report = Report::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    while goes_on() {
        if let Err(failure) = connection(plan, &mut report, &mut buffer) {
            report.failed(failure);
        }
    }
    report
}

fn connection(plan: &Plan, report: &mut Report, buffer: &mut [u8]) -> Result<(), Failure> {
    let start = Instant::now();
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
    report.handshake(start.elapsed(), tls.handshake_kind() == Some(HandshakeKind::Resumed));
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
