//! Encrypted files as text, for mails, chats and whatever else takes no other bytes: base64 (RFC 4648 s4) in lines of 64 columns between a line that begins it and one
//! that ends it, in the strict form of RFC 7468. It protects nothing: the container within does.

use crate::error::{Error, Result};
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
/// Blank bytes that may stand before the text, as what is copied out of a mail has.
const BLANKS_MAX: usize = 1024;
/// So many bytes of a file tell [`is_armored`] whether it is text.
pub const BEGINNING_BYTES: usize = BLANKS_MAX + BEGIN.len();

/// Whether these bytes begin as text does, blanks before it apart.
pub fn is_armored(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(BEGIN.as_bytes())
}

/// An encrypted file from where `source` stands, which may be text or the bytes themselves.
///
/// # Errors
/// The source's. What is wrong with text its reader returns, as [`Error`]s within an [`io::Error`].
pub fn reader<'a>(source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut source = BufReader::new(source);
    // The bytes themselves begin with one that no text has.
    let is_text = loop {
        match source.fill_buf() {
            Ok(bytes) => break bytes.first().is_some_and(|first| *first == b'-' || first.is_ascii_whitespace()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    Ok(if is_text { Box::new(Armored::new(source)) } else { Box::new(source) })
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
    /// Lines read.
    line: u64,
    /// Bytes of a line, and how many of them are given out.
    bytes: [u8; LINE_BYTES],
    len: usize,
    given: usize,
}

impl<R: BufRead> Armored<R> {
    fn new(source: R) -> Self {
        Self { source, at: At::Begin, line: 0, bytes: [0; LINE_BYTES], len: 0, given: 0 }
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::DamagedArmor { line: self.line, what }
    }

    /// The next line without its end and the blanks before that, none behind the last; a longer one than there is in such a text is cut.
    fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let got = (&mut self.source).take(BLANKS_MAX as u64).read_until(b'\n', line)?;
        self.line += u64::from(got > 0);
        line.truncate(line.trim_ascii_end().len());
        Ok(got > 0)
    }

    fn begin(&mut self, line: &mut Vec<u8>) -> Result<()> {
        let mut blanks = 0;
        while blanks < BLANKS_MAX && self.next_line(line)? {
            let text = line.trim_ascii_start();
            if text == BEGIN.as_bytes() {
                self.at = At::Lines;
                return Ok(());
            }
            if !text.is_empty() {
                break;
            }
            blanks += line.len() + 1;
        }
        Err(Error::NotEncrypted)
    }

    /// Nothing but blanks may stand behind the last line.
    fn end(&mut self, line: &mut Vec<u8>) -> Result<()> {
        self.at = At::End;
        while self.next_line(line)? {
            if !line.is_empty() {
                return Err(self.damaged("something stands behind the last line; remove it"));
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
        for text in [with("\n", "\r\n"), with("\n", " \t\n"), format!("\n\r\n  {text}\n \n"), text.trim_end().to_owned()] {
            assert_eq!(read(text.as_bytes()).unwrap(), bytes, "{text:?}");
        }
    }

    /// What is no text is read as it stands.
    #[test]
    fn bytes_themselves_come_as_they_are() {
        assert_eq!(read(b"\x89BYWASH\n").unwrap(), b"\x89BYWASH\n");
        assert_eq!(read(b"").unwrap(), b"");
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
        assert!(said(&[lines[0], lines[4], "-- ", "Alice"]).starts_with("line 3 of its text is damaged: something stands behind"));
        assert!(said(&["-----BEGIN PGP MESSAGE-----", "Zm9v", "x"]).contains("not a file encrypted by bywash"));
        let blanks = format!("{}{text}", "\n".repeat(BLANKS_MAX + 1));
        assert!(matches!(read(blanks.as_bytes()), Err(Error::NotEncrypted)));
        assert!(matches!(read(&[b' '; 1 << 16]), Err(Error::NotEncrypted)));
    }
}
