//! Metrics over HTTP, for a Prometheus on this machine: `GET /metrics`, and `GET /stats.json`. One thread, only where configured.

use crate::broker::Shared;
use crate::stats::Stats;
use bywash_core::{Error, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// How long one connection may last.
const CONNECTION_BOUND: Duration = Duration::from_secs(10);

/// Connections at a time. Whoever is on this machine can open them, and each takes a descriptor from the clients.
const CONNECTIONS_MAX: usize = 16;

/// The endpoint; it ends when this is dropped.
pub(crate) struct Endpoint {
    stop: Arc<Notify>,
    address: SocketAddr,
}

impl Endpoint {
    /// Where it listens; port 0 was replaced by a free one.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Binds, and serves from a thread of its own.
    pub(crate) fn start(address: SocketAddr, shared: &Arc<Shared>) -> Result<Self> {
        let fail = |what: &str, error: std::io::Error| Error::Unavailable { what: format!("metrics on {address}: cannot {what}: {error}") };
        if !address.ip().is_loopback() {
            let reason = "only a loopback address: metrics name processes and users; put a proxy in front to publish them".into();
            return Err(Error::Config { place: format!("metrics address {address}"), reason });
        }
        let listener = TcpListener::bind(address).map_err(|error| fail("listen", error))?;
        listener.set_nonblocking(true).map_err(|error| fail("listen without blocking", error))?;
        let address = listener.local_addr().map_err(|error| fail("learn the port", error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| fail("start", error))?;
        let stop = Arc::new(Notify::new());
        let (stopped, shared) = (stop.clone(), Arc::downgrade(shared));
        let serve = async move {
            tokio::select! {
                () = accept(listener, shared) => {}
                () = stopped.notified() => {}
            }
        };
        let thread = std::thread::Builder::new().name("bywash-metrics".into()).stack_size(crate::client::STACK_BYTES);
        thread.spawn(move || runtime.block_on(serve)).map_err(|error| fail("start a thread", error))?;
        Ok(Self { stop, address })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

async fn accept(listener: TcpListener, shared: Weak<Shared>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("metrics: {error}"),
    };
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: connections that end will give some back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let shared = shared.clone();
        let service = hyper::service::service_fn(move |request| {
            let response = answer(&request, &shared);
            async move { Ok::<_, Infallible>(response) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // Served, broken or out of time: the place is free again either way.
            let _ = tokio::time::timeout(CONNECTION_BOUND, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, shared: &Weak<Shared>) -> Response<Full<Bytes>> {
    let reply = |status: StatusCode, kind: &'static str, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
        response
    };
    const PLAIN: &str = "text/plain; charset=utf-8";
    let Some(shared) = shared.upgrade() else {
        return reply(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "the broker has ended\n".into());
    };
    let (kind, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => ("application/openmetrics-text; version=1.0.0; charset=utf-8", Stats::of(&shared).to_prometheus()),
        (&Method::GET, "/stats.json") => ("application/json", Stats::of(&shared).to_json()),
        _ => return reply(StatusCode::NOT_FOUND, PLAIN, "there are /metrics and /stats.json\n".into()),
    };
    match text {
        Ok(text) => reply(StatusCode::OK, kind, text),
        Err(error) => reply(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, error.to_string()),
    }
}
