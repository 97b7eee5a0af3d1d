//! One GET over an open connection, compared with what was expected while it arrives.

use crate::args::Digest;
use aws_lc_rs::digest::{Context, SHA256};
use std::io::{self, Read, Write};

/// Longest response header taken.
const HEADER_MAX: usize = 16 * 1024;

/// What a fetched body must be.
pub(crate) enum Expected {
    /// Anything of the length announced.
    Anything,
    /// Of this SHA-256.
    Sha256(Digest),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// What went wrong with a connection.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection, the handshake or the transfer; the first string is the kind it is counted under.
    Broken(&'static str, String),
    /// The answer came, but it is not what was expected.
    WrongBytes(String),
}

impl Failure {
    /// Names a failure of the socket or the TLS stream that happened `during` something.
    pub(crate) fn from_io(during: &'static str, error: &io::Error) -> Self {
        use io::ErrorKind::*;
        let kind = match (error.kind(), during) {
            (ConnectionRefused, _) => "refused",
            (ConnectionReset | BrokenPipe | ConnectionAborted, "handshake") => "reset in handshake",
            (ConnectionReset | BrokenPipe | ConnectionAborted, _) => "reset",
            (TimedOut | WouldBlock, "handshake") => "timeout in handshake",
            (TimedOut | WouldBlock, "connect") => "timeout in connect",
            (TimedOut | WouldBlock, _) => "timeout",
            (UnexpectedEof, "handshake") => "closed in handshake",
            (UnexpectedEof, _) => "closed early",
            (InvalidData, "handshake") => "TLS error in handshake",
            (InvalidData, _) => "TLS error",
            _ => "other",
        };
        Self::Broken(kind, format!("{during}: {error}"))
    }
}

/// Compares a body with what was expected, piece by piece.
struct Comparison<'a> {
    expected: &'a Expected,
    digest: Context,
    seen: usize,
    differs_at: Option<usize>,
}

impl<'a> Comparison<'a> {
    fn new(expected: &'a Expected) -> Self {
        Self { expected, digest: Context::new(&SHA256), seen: 0, differs_at: None }
    }

    fn take(&mut self, piece: &[u8]) {
        match self.expected {
            Expected::Anything => {}
            Expected::Sha256(_) => self.digest.update(piece),
            Expected::Bytes(bytes) => {
                let wanted = bytes.get(self.seen..).unwrap_or_default();
                if !wanted.starts_with(piece) && self.differs_at.is_none() {
                    let same = wanted.iter().zip(piece).take_while(|(a, b)| a == b).count();
                    self.differs_at = Some(self.seen + same);
                }
            }
        }
        self.seen += piece.len();
    }

    fn finish(self) -> Result<u64, Failure> {
        let wrong = match self.expected {
            Expected::Anything => None,
            Expected::Sha256(wanted) => (self.digest.finish().as_ref() != wanted.0).then(|| "the SHA-256 differs".to_owned()),
            Expected::Bytes(bytes) if bytes.len() != self.seen => Some(format!("{} bytes instead of {}", self.seen, bytes.len())),
            Expected::Bytes(_) => self.differs_at.map(|place| format!("byte {place} differs")),
        };
        wrong.map_or(Ok(self.seen as u64), |reason| Err(Failure::WrongBytes(reason)))
    }
}

/// Fetches `path` and returns the length of the body, verified. `buffer` is working space.
pub(crate) fn get(
    stream: &mut (impl Read + Write),
    host: &str,
    path: &str,
    last: bool,
    expected: &Expected,
    buffer: &mut [u8],
) -> Result<u64, Failure> {
    let broken = |error| Failure::from_io("transfer", &error);
    let connection = if last { "close" } else { "keep-alive" };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: tls-load\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).map_err(broken)?;
    let (header, body_start, mut have) = header(stream, buffer)?;
    let length = body_length(&header)?;
    let mut comparison = Comparison::new(expected);
    comparison.take(&buffer[body_start..have.min(body_start + length)]);
    let mut left = length - comparison.seen;
    while left > 0 {
        let room = left.min(buffer.len());
        have = stream.read(&mut buffer[..room]).map_err(broken)?;
        if have == 0 {
            return Err(Failure::Broken("closed early", format!("{left} of {length} bytes of the body are missing")));
        }
        comparison.take(&buffer[..have]);
        left -= have;
    }
    comparison.finish()
}

/// Reads up to the end of the header; returns it, where the body begins in the buffer, and how much the buffer holds.
fn header(stream: &mut impl Read, buffer: &mut [u8]) -> Result<(String, usize, usize), Failure> {
    let mut have = 0;
    loop {
        if let Some(end) = buffer[..have].windows(4).position(|four| four == b"\r\n\r\n") {
            return Ok((String::from_utf8_lossy(&buffer[..end]).into_owned(), end + 4, have));
        }
        if have >= HEADER_MAX.min(buffer.len()) {
            return Err(Failure::Broken("HTTP", "the response header does not end".to_owned()));
        }
        let read = stream.read(&mut buffer[have..]).map_err(|error| Failure::from_io("transfer", &error))?;
        if read == 0 {
            return Err(Failure::Broken("closed early", "no complete response header".to_owned()));
        }
        have += read;
    }
}

fn body_length(header: &str) -> Result<usize, Failure> {
    let http = |reason: String| Failure::Broken("HTTP", reason);
    let status = header.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(http(format!("status {status}")));
    }
    let field = header.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, value) = field.ok_or_else(|| http("no Content-Length".to_owned()))?;
    value.trim().parse().map_err(|_| http(format!("Content-Length '{}'", value.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that answers with a text, a few bytes at a time.
    struct Wire<'a>(&'a [u8]);

    impl Read for Wire<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let take = self.0.len().min(buffer.len()).min(5);
            buffer[..take].copy_from_slice(&self.0[..take]);
            self.0 = &self.0[take..];
            Ok(take)
        }
    }

    impl Write for Wire<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn fetch(answer: &str, expected: &Expected) -> Result<u64, String> {
        get(&mut Wire(answer.as_bytes()), "h", "/", true, expected, &mut [0; 256]).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn a_body_is_compared_to_the_last_byte() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nhello, world";
        let bytes = |text: &str| Expected::Bytes(text.into());
        assert_eq!(fetch(answer, &bytes("hello, world")), Ok(12));
        assert_eq!(fetch(answer, &Expected::Anything), Ok(12));
        assert!(fetch(answer, &bytes("hello, worlD")).unwrap_err().contains("byte 11 differs"));
        assert!(fetch(answer, &bytes("hello, world!")).unwrap_err().contains("12 bytes instead of 13"));
        assert!(fetch(answer, &bytes("hello")).unwrap_err().contains("12 bytes instead of 5"));
        let digest = aws_lc_rs::digest::digest(&SHA256, b"hello, world");
        let digest = Digest(digest.as_ref().try_into().unwrap());
        assert_eq!(fetch(answer, &Expected::Sha256(digest)), Ok(12));
        assert!(fetch(&answer.replace("world", "World"), &Expected::Sha256(digest)).unwrap_err().contains("SHA-256"));
    }

    #[test]
    fn what_is_not_a_whole_answer_is_named() {
        let failure = |answer| fetch(answer, &Expected::Anything).unwrap_err();
        assert!(failure("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello").contains("7 of 12 bytes"));
        assert!(failure("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").contains("status 404"));
        assert!(failure("HTTP/1.1 200 OK\r\n\r\n").contains("no Content-Length"));
        assert!(failure("HTTP/1.1 200 OK\r\nConte").contains("no complete response header"));
        assert!(failure(&"x".repeat(1000)).contains("does not end"));
    }
}
