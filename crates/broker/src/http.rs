//! Metrics over HTTP, for a Prometheus on this machine: `GET /metrics`, and `GET /stats.json`. One thread, only where configured.
//!
//! Whoever is on this machine can read them, so they are sums: who connects is told over the socket alone, where the kernel says who asks.

use crate::broker::Shared;
use crate::stats::Stats;
use bywash_core::{Error, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, TcpListener};
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
            let reason = "only a loopback address; put a proxy in front to publish metrics".into();
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
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    const PLAIN: &str = "text/plain; charset=utf-8";
    if !request.headers().get(HOST).is_none_or(names_this_machine) {
        return reply(
            StatusCode::FORBIDDEN,
            PLAIN,
            "only as localhost or by a loopback address: a proxy has to say one of these as Host\n".into(),
        );
    }
    let Some(shared) = shared.upgrade() else {
        return reply(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "the broker has ended\n".into());
    };
    // From what answers HEAD the server takes the body away.
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (kind, text) = match request.uri().path() {
        "/metrics" if is_read => ("application/openmetrics-text; version=1.0.0; charset=utf-8", Stats::of(&shared).to_prometheus()),
        "/stats.json" if is_read => ("application/json", Stats::of(&shared).without_people().to_json()),
        _ => return reply(StatusCode::NOT_FOUND, PLAIN, "there are /metrics and /stats.json\n".into()),
    };
    match text {
        Ok(text) => reply(StatusCode::OK, kind, text),
        Err(error) => reply(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, error.to_string()),
    }
}

/// Whether a request is for this machine by its own name. A page of elsewhere whose name leads here all of a sudden is not (DNS rebinding): its reader's browser would let it
/// read the answer.
fn names_this_machine(host: &HeaderValue) -> bool {
    let Ok(host) = Authority::try_from(host.as_bytes()) else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_own_names_are_answered() {
        let names = |host| names_this_machine(&HeaderValue::from_static(host));
        assert!(["localhost", "LocalHost:9464", "127.0.0.1:9464", "127.8.8.8", "[::1]:9464"].into_iter().all(names));
        let others =
            ["", "evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[fe80::1]", "a b"];
        assert!(!others.into_iter().any(names));
    }
}
