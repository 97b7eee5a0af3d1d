//! TLS between `openssl s_server` and `s_client`, one of them on Bywash: every protocol and record protection, byte for byte.

mod common;

use common::*;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Protocol option, cipher option and name, further options.
const CASES: &[(&str, &str, &str, &[&str])] = &[
    ("-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256", &[]),
    ("-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384", &[]),
    ("-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", &[]),
    ("-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256", &[]),
    ("-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384", &[]),
    ("-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305", &[]),
    ("-tls1_2", "-cipher", "AES256-GCM-SHA384", &[]),
    ("-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384", &[]),
    ("-tls1_2", "-cipher", "ECDHE-RSA-AES256-SHA384", &["-no_etm"]),
    ("-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA", &["-no_etm"]),
    ("-tls1_1", "-cipher", "ECDHE-RSA-AES128-SHA:@SECLEVEL=0", &["-no_etm"]),
    ("-tls1", "-cipher", "ECDHE-RSA-AES256-SHA:@SECLEVEL=0", &["-no_etm"]),
    ("-tls1", "-cipher", "ECDHE-RSA-AES256-SHA:@SECLEVEL=0", &[]),
];

struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start(folder: &Path, configuration: &Path, options: &[&str]) -> Self {
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem", "-WWW", "-cipher", "ALL:@SECLEVEL=0"])
            .args(options)
            .current_dir(folder)
            .env("OPENSSL_CONF", configuration)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the openssl command is installed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT 127.0.0.1:").map(str::to_owned)).expect("the server accepts");
        // Read on, so that the server never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn download(configuration: &Path, port: &str, options: &[&str]) -> (Vec<u8>, String) {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-quiet", "-ign_eof"])
        .args(options)
        .env("OPENSSL_CONF", configuration)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the openssl command is installed");
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let done = child.wait_with_output().unwrap();
    drop(input);
    let body = done.stdout.windows(4).position(|window| window == b"\r\n\r\n").map_or(Vec::new(), |at| done.stdout[at + 4..].to_vec());
    (body, String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn every_record_protection_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let page = Random::new(40).bytes(200_001);
    std::fs::write(folder.path().join("page"), &page).unwrap();
    let plain = folder.path().join("plain.cnf");
    std::fs::write(&plain, "").unwrap();
    for route in ["auto", "queue"] {
        let routed = configuration(route, folder.path());
        for (server_side, client_side) in [(&routed, &plain), (&plain, &routed)] {
            for &(protocol, option, cipher, further) in CASES {
                let server = Server::start(folder.path(), server_side, further);
                let (body, said) = download(client_side, &server.port, &[&[protocol, option, cipher], further].concat());
                assert!(body == page, "{protocol} {cipher} {further:?}, route {route}: {} of {} bytes; {said}", body.len(), page.len());
            }
        }
    }
}
