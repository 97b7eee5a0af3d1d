//! Encrypted files as text, for mails, chats and whatever else takes no other bytes: base64 (RFC 4648 s4) in lines of 64 columns between a line that begins it and one
//! that ends it, in the strict form of RFC 7468. It protects nothing: the container within does.

use crate::error::{Error, Result};
use crate::header::MAGIC;
use base64ct::{Base64, Encoding};
use core::mem::take;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};

/// The first line.
const BEGIN: &str = "-----BEGIN BYWASH ENCRYPTED FILE-----";
/// The last one.
const END: &str = "-----END BYWASH ENCRYPTED FILE-----";
/// Bytes in a full line, and its columns.
const LINE_BYTES: usize = 48;
const LINE_COLUMNS: usize = 64;
/// Bytes that are written at a time.
const PIECE_BYTES: usize = 1024 * LINE_BYTES;
/// Bytes that may stand before the text, such as a mail's head.
const BEFORE_MAX: u64 = 64 << 10;
/// Bytes that are read of a line; a longer one is taken for several, of which none is one of ours.
const PIECE_OF_LINE_BYTES: u64 = 1024;
/// What some editors begin a text with (Unicode's byte order mark).
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Whether there is an encrypted file as text from where `source` stands, or behind other text, or one that is quoted, which its reader refuses in words.
pub fn is_armored(source: impl Read) -> bool {
    let mut source = BufReader::new(source);
    let is_text = is_text(&mut source).unwrap_or(false);
    is_text && matches!(Armored::new(source).begin(&mut Vec::new()), Ok(()) | Err(Error::DamagedArmor { .. }))
}

/// Whether what comes is no encrypted file as it stands, which begins with a byte that no text begins with.
fn is_text(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        match source.fill_buf() {
            Ok(bytes) => return Ok(bytes.first().is_some_and(|first| *first != MAGIC[0])),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// An encrypted file from where `source` stands, which may be text or the bytes themselves.
///
/// # Errors
/// The source's. What is wrong with text its reader returns, as [`Error`]s within an [`io::Error`].
pub fn reader<'a>(source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut source = BufReader::new(source);
    Ok(if is_text(&mut source)? { Box::new(Armored::new(source)) } else { Box::new(source) })
}

/// Makes text of the bytes written to it.
pub struct Armor<W> {
    target: W,
    /// Whether the first line is written.
    is_begun: bool,
    /// What does not fill a line yet.
    rest: Vec<u8>,
}

impl<W: Write> Armor<W> {
    /// Writes to that.
    pub fn new(target: W) -> Self {
        Self { target, is_begun: false, rest: Vec::new() }
    }

    /// Writes what is left and the last line. Without it the text is known to be cut off.
    ///
    /// # Errors
    /// The target's.
    pub fn finish(mut self) -> io::Result<()> {
        let rest = take(&mut self.rest);
        self.lines(&rest)?;
        self.target.write_all(format!("{END}\n").as_bytes())?;
        self.target.flush()
    }

    fn lines(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut text = String::with_capacity(bytes.len().div_ceil(LINE_BYTES) * (LINE_COLUMNS + 1) + BEGIN.len() + 1);
        if !self.is_begun {
            text.extend([BEGIN, "\n"]);
            self.is_begun = true;
        }
        let mut columns = [0; LINE_COLUMNS];
        for line in bytes.chunks(LINE_BYTES) {
            let line = Base64::encode(line, &mut columns).map_err(io::Error::other)?;
            text.extend([line, "\n"]);
        }
        self.target.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Armor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.rest.len());
        self.rest.extend_from_slice(&bytes[..taken]);
        if self.rest.len() == PIECE_BYTES {
            let mut piece = take(&mut self.rest);
            self.lines(&piece)?;
            piece.clear();
            self.rest = piece;
        }
        Ok(taken)
    }

    /// What does not fill a piece yet stays: its end is not known.
    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}

/// Where in its text a reader is.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Begin,
    Lines,
    /// Behind a line that is not full: only the last one follows.
    ShortLine,
    End,
}

/// Reads the bytes that text stands for.
struct Armored<R> {
    source: R,
    at: At,
    /// Lines and bytes read.
    line: u64,
    read: u64,
    /// Bytes of a line, and how many of them are given out.
    bytes: [u8; LINE_BYTES],
    len: usize,
    given: usize,
}

impl<R: BufRead> Armored<R> {
    fn new(source: R) -> Self {
        Self { source, at: At::Begin, line: 0, read: 0, bytes: [0; LINE_BYTES], len: 0, given: 0 }
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::DamagedArmor { line: self.line, what }
    }

    /// The next line without its end and the blanks before that; whether there was one.
    fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let got = (&mut self.source).take(PIECE_OF_LINE_BYTES).read_until(b'\n', line)?;
        self.line += u64::from(got > 0);
        self.read += got as u64;
        line.truncate(line.trim_ascii_end().len());
        Ok(got > 0)
    }

    fn begin(&mut self, line: &mut Vec<u8>) -> Result<()> {
        while self.read < BEFORE_MAX && self.next_line(line)? {
            let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_start();
            if text == BEGIN.as_bytes() {
                self.at = At::Lines;
                return Ok(());
            }
            if text.windows(BEGIN.len()).any(|part| part == BEGIN.as_bytes()) {
                return Err(self.damaged("something stands beside it, as in a mail that quotes it; take it as it was sent"));
            }
        }
        Err(Error::NotEncrypted)
    }

    /// What stands behind the last line, such as who sent it, is passed over; another text would be lost.
    fn end(&mut self, line: &mut Vec<u8>) -> Result<()> {
        self.at = At::End;
        while self.next_line(line)? {
            if line.trim_ascii_start() == BEGIN.as_bytes() {
                return Err(self.damaged("another encrypted text begins there; give them one by one"));
            }
        }
        Ok(())
    }

    /// Decodes the next line; whether there was one.
    fn advance(&mut self) -> Result<bool> {
        let mut line = Vec::with_capacity(LINE_COLUMNS + 2);
        if self.at == At::Begin {
            self.begin(&mut line)?;
        }
        if self.at == At::End {
            return Ok(false);
        }
        if !self.next_line(&mut line)? {
            return Err(Error::Truncated { place: format!("after line {} of its text, before `{END}`", self.line) });
        }
        if line == END.as_bytes() {
            return self.end(&mut line).map(|()| false);
        }
        if self.at == At::ShortLine {
            return Err(
                self.damaged("the line before is not full and not the last: something is missing there, or lines were wrapped anew")
            );
        }
        if line.len() > LINE_COLUMNS {
            return Err(self.damaged("it has more than 64 columns: something was added to it, or lines were joined"));
        }
        let text = core::str::from_utf8(&line).unwrap_or_default();
        let decoded = Base64::decode(text, &mut self.bytes).map(<[u8]>::len).unwrap_or_default();
        if decoded == 0 {
            return Err(self.damaged("it is no base64: something in it was changed, added or lost"));
        }
        if decoded < LINE_BYTES {
            self.at = At::ShortLine;
        }
        (self.len, self.given) = (decoded, 0);
        Ok(true)
    }
}

impl<R: BufRead> Read for Armored<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.given == self.len {
                match self.advance() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(Error::Io(error)) => return Err(error),
                    Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
                }
            }
            let count = (self.len - self.given).min(buffer.len() - filled);
            buffer[filled..][..count].copy_from_slice(&self.bytes[self.given..][..count]);
            self.given += count;
            filled += count;
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armored(bytes: &[u8]) -> String {
        let mut text = Vec::new();
        let mut armor = Armor::new(&mut text);
        // In pieces that fill no line.
        bytes.chunks(31).for_each(|piece| armor.write_all(piece).unwrap());
        armor.finish().unwrap();
        String::from_utf8(text).unwrap()
    }

    fn read(text: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader(text)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn every_length_comes_back() {
        let bytes: Vec<u8> = (0..=255).cycle().take(PIECE_BYTES * 2 + 100).collect();
        for len in (0..200).chain(PIECE_BYTES - 2..PIECE_BYTES + 50).chain([PIECE_BYTES * 2, bytes.len()]) {
            let text = armored(&bytes[..len]);
            assert_eq!(read(text.as_bytes()).unwrap(), &bytes[..len], "{len}");
            assert!(text.lines().all(|line| line.len() <= LINE_COLUMNS));
            assert_eq!(text.lines().count(), 2 + len.div_ceil(LINE_BYTES));
        }
    }

    /// The base64 that `openssl base64` and every PEM reader knows.
    #[test]
    fn it_is_the_base64_of_rfc_4648() {
        assert_eq!(armored(b"foobar"), format!("{BEGIN}\nZm9vYmFy\n{END}\n"));
        assert_eq!(armored(b"fooba"), format!("{BEGIN}\nZm9vYmE=\n{END}\n"));
        assert_eq!(armored(b""), format!("{BEGIN}\n{END}\n"));
    }

    #[test]
    fn what_mails_do_to_text_does_no_harm() {
        let bytes = [7; 100];
        let text = armored(&bytes);
        let with = |from: &str, to: &str| text.replace(from, to);
        let letter = format!("From: Alice\nSubject: as promised\n\nDear Bob,\n{text}-- \nAlice\n");
        let marked = format!("\u{feff}{text}");
        for text in [with("\n", "\r\n"), with("\n", " \t\n"), format!("\n\r\n  {text}\n \n"), text.trim_end().to_owned(), letter, marked] {
            assert_eq!(read(text.as_bytes()).unwrap(), bytes, "{text:?}");
            assert!(is_armored(text.as_bytes()), "{text:?}");
        }
    }

    /// What is no text is read as it stands.
    #[test]
    fn bytes_themselves_come_as_they_are() {
        assert_eq!(read(b"\x89BYWASH\n").unwrap(), b"\x89BYWASH\n");
        assert_eq!(read(b"").unwrap(), b"");
        assert!(!is_armored(&b"\x89BYWASH\n"[..]) && !is_armored(&b""[..]) && !is_armored(&b"-----BEGIN PGP MESSAGE-----\n"[..]));
    }

    #[test]
    fn what_is_missing_or_changed_is_said_with_its_line() {
        let text = armored(&[7; 100]);
        let lines: Vec<&str> = text.lines().collect();
        let said = |lines: &[&str]| read(lines.join("\n").as_bytes()).unwrap_err().to_string();
        assert!(said(&lines[..3]).contains("truncated after line 3 of its text"), "{}", said(&lines[..3]));
        let short = said(&[lines[0], lines[1], &lines[2][..60], lines[3], lines[4]]);
        assert!(short.starts_with("line 4 of its text is damaged: the line before is not full"), "{short}");
        assert!(said(&[lines[0], "Zm9v!mFy", lines[4]]).starts_with("line 2 of its text is damaged: it is no base64"));
        assert!(said(&[lines[0], "Zm9vYmF", lines[4]]).contains("no base64"));
        assert!(said(&[lines[0], "", lines[1], lines[4]]).contains("no base64"));
        assert!(said(&[lines[0], &format!("{}{}", lines[1], lines[2]), lines[4]]).contains("more than 64 columns"));
        let two = said(&[&lines[..], &lines[..]].concat());
        assert!(two.starts_with("line 6 of its text is damaged: another encrypted text begins there"), "{two}");
        let quoted: Vec<String> = lines.iter().map(|line| format!("> {line}")).collect();
        let quoted = said(&quoted.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(quoted.starts_with("line 1 of its text is damaged: something stands beside it"), "{quoted}");
        assert!(said(&["-----BEGIN PGP MESSAGE-----", "Zm9v", "x"]).contains("not a file encrypted by bywash"));
        let late = format!("{}{text}", "\n".repeat(BEFORE_MAX as usize));
        assert!(matches!(read(late.as_bytes()), Err(Error::NotEncrypted)));
        assert!(matches!(read(&[b' '; 1 << 20]), Err(Error::NotEncrypted)));
    }
}
