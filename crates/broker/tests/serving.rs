//! What honest clients get.

mod support;

use bywash_broker::Stats;
use bywash_core::{Algorithm, Data, Direction, Error, Key, Operation, SessionParams};
use bywash_protocol::{BrokerMessage, ClientMessage, Role, StatsFormat, VERSION};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;
use support::{LONG, Raw, ctr, ctr_operation, serve, until};

fn gcm() -> SessionParams {
    SessionParams::new(Algorithm::Aes256Gcm, Key::Symmetric((&[3; 32]).into())).unwrap()
}

fn gcm_operation<'a>(direction: Direction, text: &'a mut [u8], tag: &'a mut [u8]) -> Operation<'a> {
    Operation { direction, iv: &[5; 12], aad: b"header", data: Data::InPlace(text), tag }
}

#[test]
fn the_bytes_are_those_of_the_engine() {
    let served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&gcm()).unwrap();
    let here = bywash_manager::here().open(&gcm()).unwrap();
    for len in [0, 1, 15, 16, 17, 1000, 65536, 1 << 20, 5 << 20] {
        let text: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
        let (mut ours, mut tag) = (text.clone(), [0; 16]);
        let (mut theirs, mut expected) = (text.clone(), [0; 16]);
        let written = client.run(session, Algorithm::Aes256Gcm, &mut gcm_operation(Direction::Encrypt, &mut ours, &mut tag)).unwrap();
        here.run(&mut gcm_operation(Direction::Encrypt, &mut theirs, &mut expected)).unwrap();
        assert_eq!((written, &ours, tag), (len, &theirs, expected), "{len} bytes");
        client.run(session, Algorithm::Aes256Gcm, &mut gcm_operation(Direction::Decrypt, &mut ours, &mut tag)).unwrap();
        assert_eq!(ours, text, "{len} bytes back");
    }
}

#[test]
fn digests_and_public_keys_go_elsewhere_than_in_place() {
    let served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let run = |client: &mut Raw, params: &SessionParams, input: &[u8]| {
        let session = client.open(params).unwrap();
        let mut output = vec![0; params.algorithm().output_len(input.len())];
        let mut operation =
            Operation { direction: Direction::Compute, iv: &[], aad: &[], data: Data::Copy { input, output: &mut output }, tag: &mut [] };
        client.run(session, params.algorithm(), &mut operation).unwrap();
        output
    };
    let digest = run(&mut client, &SessionParams::new(Algorithm::Sha256, Key::None).unwrap(), b"abc");
    assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf], "FIPS 180-4's example");
    let key = |byte: u8| Key::EcPrivate(vec![byte; 32].into());
    let publics = [1, 2].map(|byte| run(&mut client, &SessionParams::new(Algorithm::X25519Public, key(byte)).unwrap(), &[]));
    let shared = |client: &mut Raw, byte, other: &[u8]| run(client, &SessionParams::new(Algorithm::X25519, key(byte)).unwrap(), other);
    assert_eq!(shared(&mut client, 1, &publics[1]), shared(&mut client, 2, &publics[0]));
}

#[test]
fn errors_of_a_request_are_its_own() {
    let served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&gcm()).unwrap();
    let forged = client.run(session, Algorithm::Aes256Gcm, &mut gcm_operation(Direction::Decrypt, &mut [1, 2], &mut [0; 16]));
    assert_eq!(forged, Err(Error::Authentication));
    let closed = client.run(session + 1, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [1]));
    assert_eq!(closed, Err(Error::NoSession { id: session + 1 }));
    let misfit = client.run(session, Algorithm::Aes256Gcm, &mut ctr_operation(&mut [1]));
    assert!(matches!(misfit, Err(Error::WrongOperation { .. })), "{misfit:?}");
    client.run(session, Algorithm::Aes256Gcm, &mut gcm_operation(Direction::Encrypt, &mut [1, 2], &mut [0; 16])).unwrap();
    client.socket.send(&ClientMessage::Close { session }, &[], LONG).unwrap();
    client.stats(StatsFormat::Json);
    let closed = client.run(session, Algorithm::Aes256Gcm, &mut gcm_operation(Direction::Encrypt, &mut [1, 2], &mut [0; 16]));
    assert_eq!(closed, Err(Error::NoSession { id: session }));
}

#[test]
fn many_at_a_time_are_each_answered() {
    let served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let x25519 = SessionParams::new(Algorithm::X25519Public, Key::EcPrivate(vec![9; 32].into())).unwrap();
    let (slow, fast) = (client.open(&x25519).unwrap(), client.open(&ctr()).unwrap());
    for _ in 0..20 {
        let mut pending = Vec::new();
        for number in 0..100u8 {
            let mut output = [0; 32];
            let data = Data::Copy { input: &[], output: &mut output };
            let public = Operation { direction: Direction::Compute, iv: &[], aad: &[], data, tag: &mut [] };
            pending.push(if number % 2 == 0 { client.begin(slow, &public) } else { client.begin(fast, &ctr_operation(&mut [number])) });
        }
        for ticket in pending {
            let outcome = ticket.wait(support::SPIN, LONG).expect("answered");
            assert!(outcome.into_result(Algorithm::X25519, 0).is_ok());
        }
    }
    let stats = served.handle.stats();
    assert_eq!(stats.clients[0].work.iter().map(|work| work.operations).sum::<u64>(), 2000);
}

#[test]
fn a_client_that_dies_is_reclaimed_and_its_run_remembered() {
    let served = serve(|_| {});
    let mut client = Raw::connect_as(&served.path, VERSION, Role::Compute, Some("run 7")).unwrap();
    let session = client.open(&ctr()).unwrap();
    client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [0; 100])).unwrap();
    client.ring.as_ref().unwrap().region().count(0, Algorithm::Sha256, 5, 500);
    assert_eq!(served.handle.stats().sessions, 1);
    drop(client);
    until("the client is gone", || served.handle.clients() == 0);
    let stats = served.handle.stats();
    assert_eq!((stats.sessions, stats.clients.len()), (0, 0));
    let run = stats.runs.iter().find(|run| run.run == "run 7").unwrap();
    let work: Vec<_> = run.work.iter().map(|work| (work.algorithm.as_str(), work.engine.as_str(), work.operations, work.bytes)).collect();
    assert_eq!(work, [("AES-256-CTR", "cpu", 1, 100), ("SHA-256", "here", 5, 500)]);
}

/// GMAC is GCM without a text.
#[test]
fn accounts_have_the_bytes_of_a_message_that_is_only_authenticated() {
    let served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&gcm()).unwrap();
    let account = |text: &mut [u8], aad: &[u8]| {
        let data = Data::InPlace(text);
        let mut operation = Operation { direction: Direction::Encrypt, iv: &[5; 12], aad, data, tag: &mut [0; 16] };
        client.run(session, Algorithm::Aes256Gcm, &mut operation).unwrap();
        served.handle.stats().clients[0].work[0].bytes
    };
    assert_eq!(account(&mut [], &[1; 300]), 300);
    assert_eq!(account(&mut [2; 20], &[1; 300]), 320, "beside a text it is none of it");
}

#[test]
fn statistics_come_as_json_and_for_prometheus() {
    let served = serve(|config| config.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&ctr()).unwrap();
    client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [0; 64])).unwrap();
    let mut observer = Raw::connect_as(&served.path, VERSION, Role::Observe, None).unwrap();
    assert!(observer.ring.is_none());
    let stats: Stats = serde_json::from_str(&observer.stats(StatsFormat::Json)).unwrap();
    assert_eq!((stats.clients.len(), stats.latencies[0].requests), (2, 1));
    assert_eq!(stats.clients[0].pid, std::process::id());
    let text = observer.stats(StatsFormat::Prometheus);
    assert!(text.contains("bywash_request_seconds_count{engine=\"cpu\",algorithm=\"AES-256-CTR\",modelled=\"false\"} 1"), "{text}");
    assert!(matches!(observer.open(&ctr()), Err(Error::Unavailable { .. })), "an observer opens no sessions");
}

#[test]
fn metrics_are_served_on_loopback_alone() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let mut config = bywash_broker::BrokerConfig::new(socket.clone(), support::manager());
    config.metrics = Some("0.0.0.0:0".parse().unwrap());
    let error = bywash_broker::Broker::bind(config.clone()).err().unwrap().to_string();
    assert!(error.contains("loopback"), "{error}");
    config.metrics = Some("127.0.0.1:0".parse().unwrap());
    let broker = bywash_broker::Broker::bind(config).unwrap();
    let (address, handle) = (broker.metrics_address().unwrap(), broker.handle());
    let thread = broker.spawn().unwrap();
    let ask = |method: &str, path: &str, host: &str| {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let own = address.to_string();
    let get = |path: &str| ask("GET", path, &own);
    assert!(get("/metrics").contains("bywash_engine_up{engine=\"cpu\""));
    assert!(get("/else").starts_with("HTTP/1.1 404"));
    let head = ask("HEAD", "/metrics", &own);
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "as `curl -I` asks: {head}");
    assert!(ask("POST", "/metrics", &own).starts_with("HTTP/1.1 404"));
    assert!(ask("GET", "/metrics", "rebound.example").starts_with("HTTP/1.1 403"), "another name leads here");
    // Whoever is on the machine can ask, so nobody is named.
    let mut client = Raw::connect_as(&socket, VERSION, Role::Compute, Some("run-of-somebody")).unwrap();
    let session = client.open(&ctr()).unwrap();
    client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [0; 64])).unwrap();
    assert!(client.stats(StatsFormat::Json).contains("run-of-somebody"), "over the socket it is");
    let (json, text) = (get("/stats.json"), get("/metrics"));
    let told: Stats = serde_json::from_str(json.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert!(told.clients.is_empty() && told.runs.is_empty() && told.latencies[0].requests == 1, "{json}");
    assert!(text.contains("bywash_clients 1") && !text.contains("run-of-somebody"), "{text}");
    drop(client);
    handle.shutdown();
    thread.join().unwrap().unwrap();
}

#[test]
fn who_says_nothing_for_long_stays_connected() {
    let served = serve(|config| config.silence = Duration::from_millis(10));
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&ctr()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let mut text = [0; 64];
    assert_eq!(client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut text)), Ok(64));
    assert!(client.open(&ctr()).is_ok());
}

#[test]
fn a_recording_has_what_was_served_and_what_was_done_in_place() {
    let served = serve(|_| {});
    let file = tempfile::tempfile().unwrap();
    let mut reader = file.try_clone().unwrap();
    let mut observer = Raw::connect_as(&served.path, VERSION, Role::Observe, None).unwrap();
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&ctr()).unwrap();
    client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [0; 8])).unwrap();
    let pipe: OwnedFd = std::io::pipe().unwrap().1.into();
    let refused = observer.ask_with(&ClientMessage::StartRecording { request: 1 }, Some(&pipe));
    assert!(refused.unwrap_err().to_string().contains("regular file"));
    let file: OwnedFd = file.into();
    observer.ask_with(&ClientMessage::StartRecording { request: 1 }, Some(&file)).unwrap();
    assert!(client.board.is_recording());
    assert!(served.handle.start_recording(Box::new(std::io::sink())).unwrap_err().to_string().contains("already"));
    client.run(session, Algorithm::Aes256Ctr, &mut ctr_operation(&mut [0; 32])).unwrap();
    let now = bywash_protocol::monotonic_ns();
    let entry = bywash_protocol::TraceEntry {
        arrival_ns: now,
        start_ns: now,
        done_ns: now + 70,
        bytes: 11,
        session: 4,
        algorithm: Algorithm::Sha256,
        direction: Direction::Compute,
        calls: 2,
    };
    client.ring.as_ref().unwrap().region().trace(entry);
    let end = observer.ask(&ClientMessage::StopRecording { request: 2 }).unwrap();
    assert_eq!(end, BrokerMessage::Recorded { request: 2, written: 2, dropped: 0 });
    assert!(!client.board.is_recording());
    let mut text = String::new();
    std::io::Seek::rewind(&mut reader).unwrap();
    reader.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(bywash_core::trace::HEADER));
    let mut records: Vec<bywash_core::trace::Record> = lines.map(|line| line.parse().unwrap()).collect();
    records.sort_by_key(|record| record.bytes);
    let seen: Vec<_> = records.iter().map(|record| (record.engine.as_str(), record.bytes, record.calls, record.client)).collect();
    assert_eq!(seen, [("here", 11, 2, client.number), ("cpu", 32, 1, client.number)]);
    assert!(records.iter().all(|record| record.arrival.0 < 10_000_000_000 && record.done >= record.start));
}

#[test]
fn shutdown_ends_what_is_in_flight_and_leaves_nothing_behind() {
    let mut served = serve(|_| {});
    let mut client = Raw::connect(&served.path).unwrap();
    let session = client.open(&ctr()).unwrap();
    let tickets: Vec<_> = (0..100).map(|_| client.begin(session, &ctr_operation(&mut [0; 4096]))).collect();
    served.end().unwrap();
    for ticket in tickets {
        let outcome = ticket.wait(support::SPIN, LONG).expect("answered, one way or the other");
        let result = outcome.into_result(Algorithm::Aes256Ctr, session);
        assert!(matches!(result, Ok(4096) | Err(Error::Unavailable { .. })), "{result:?}");
    }
    assert!(client.board.is_draining() && client.socket.is_hung_up());
    assert!(!served.path.exists() && !served.path.with_extension("sock.lock").exists());
    assert!(Raw::connect(&served.path).is_err());
}
