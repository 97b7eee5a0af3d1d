//! The command line.

use clap::{ArgGroup, Parser, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Loads a TLS server, verifies every byte, reports handshakes/s, MB/s, latencies and failures.
#[derive(Debug, Parser)]
#[command(version, group(ArgGroup::new("length").required(true).args(["seconds", "count"])))]
pub(crate) struct Args {
    /// The server.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) connect: SocketAddr,
    /// The name asked for, and checked in the certificate.
    #[arg(long, default_value = "localhost")]
    pub(crate) sni: String,
    /// Certificates (PEM) to trust.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: PathBuf,
    /// TLS version, exactly this one.
    #[arg(long, value_enum, default_value_t = Tls::V13)]
    pub(crate) tls: Tls,
    /// The only group in which a secret is agreed on; by default the server chooses among those of the library.
    #[arg(long, value_enum)]
    pub(crate) group: Option<Group>,
    /// Connections open at the same time, each on its own thread; with --rate the most there may be.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) connections: u32,
    /// Opens so many connections a second, at random moments (Poisson arrivals), whether or not earlier ones have
    /// ended. Latencies then count from the moment at which each was due. Without it a connection follows when one ends.
    #[arg(long, value_name = "PER_SECOND", value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// Takes RSA keys from 1024 bits on, which nobody should: for measuring what used to be. TLS 1.2 only.
    #[arg(long)]
    pub(crate) short_rsa: bool,
    /// The client's own certificate chain (PEM), for servers that ask for one.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The private key (PEM) to --cert.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Goes on for so long; connections that are open then are finished.
    #[arg(long, value_parser = positive)]
    pub(crate) seconds: Option<f64>,
    /// Opens so many connections in all.
    #[arg(long)]
    pub(crate) count: Option<u64>,
    /// Fetches this path after each handshake (HTTP/1.1); without it, handshakes only.
    #[arg(long)]
    pub(crate) path: Option<String>,
    /// Fetches so many times over each connection.
    #[arg(long, default_value_t = 1, requires = "path")]
    pub(crate) requests: u64,
    /// What is fetched must have this SHA-256.
    #[arg(long, value_name = "HEX", requires = "path", conflicts_with = "expect", value_parser = digest)]
    pub(crate) expect_sha256: Option<Digest>,
    /// What is fetched must equal this file, byte for byte (cheaper than a digest).
    #[arg(long, value_name = "FILE", requires = "path")]
    pub(crate) expect: Option<PathBuf>,
    /// Resumes sessions where the server lets it; by default every handshake is a full one.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Longest wait for a connection, a read or a write, in seconds.
    #[arg(long, default_value_t = 10.0, value_parser = positive)]
    pub(crate) timeout: f64,
    /// Reports in JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tls {
    /// TLS 1.2, RFC 5246
    #[value(name = "1.2")]
    V12,
    /// TLS 1.3, RFC 8446
    #[value(name = "1.3")]
    V13,
}

/// A group for key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Group {
    /// RFC 7748
    X25519,
    /// NIST P-256
    Secp256r1,
    /// NIST P-384
    Secp384r1,
}

/// A SHA-256 value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("must be above 0".to_owned()) }
}

fn digest(text: &str) -> Result<Digest, String> {
    let wrong = || "a SHA-256 is 64 hexadecimal digits".to_owned();
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, place) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[place..place + 2], 16).map_err(|_| wrong())?;
    }
    Ok(Digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [&str; 5] = ["tls-load", "--connect", "127.0.0.1:1", "--ca", "x"];

    fn parse(more: &[&str]) -> Result<Args, String> {
        Args::try_parse_from(BASE.iter().chain(more)).map_err(|error| error.to_string())
    }

    #[test]
    fn needs_an_end() {
        assert!(parse(&[]).is_err());
        assert!(parse(&["--seconds", "1"]).is_ok());
        assert!(parse(&["--count", "1", "--seconds", "1"]).is_err());
        assert!(parse(&["--seconds", "-1"]).is_err());
        assert!(parse(&["--count", "1", "--rate", "0"]).is_err());
        assert!(parse(&["--count", "1", "--cert", "x"]).unwrap_err().contains("--key"));
    }

    #[test]
    fn digests_are_read_strictly() {
        let hex = "00ff".repeat(16);
        assert_eq!(digest(&hex).unwrap().0[..4], [0, 255, 0, 255]);
        assert!(digest("00").is_err() && digest(&"g".repeat(64)).is_err());
        assert!(parse(&["--count", "1", "--expect-sha256", &hex]).unwrap_err().contains("--path"));
    }
}
