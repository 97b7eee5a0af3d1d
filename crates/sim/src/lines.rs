//! Lines of a file that is anybody's: none without an end, as `/dev/zero` has it, fills the memory, and what is compressed is called so.

use bywash_core::{Error, Result};
use std::borrow::Cow;
use std::io::{BufRead, Read};

/// The longest line, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// The most lines of a log. A busy server writes as many in weeks, and `yes` in a minute.
pub const LINES_MAX: u64 = 1 << 26;

/// The most requests of a recording, which are kept until they are in order, and of whatever log where each is kept with all that is known of it: some 3 GiB of them.
pub const RECORDS_MAX: u64 = 1 << 24;

/// What the place of standard input is called.
pub const STDIN: &str = "stdin";

/// What compressed files have, from some byte on, and what writes their text.
const PACKED: [(usize, &[u8], &str); 7] = [
    (0, b"\x1f\x8b", "zcat"),
    (0, b"\x1f\x9d", "zcat"),
    (4, b"1AY&SY", "bzcat"),
    (0, b"\xfd7zXZ\0", "xzcat"),
    (0, b"\x28\xb5\x2f\xfd", "zstdcat"),
    (0, b"\x04\x22\x4d\x18", "lz4cat"),
    (0, b"PK\x03\x04", "unzip -p"),
];

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number, from 1 on.
    pub number: u64,
    /// What it says, without what ends it.
    pub text: Cow<'a, str>,
    /// Whether no line feed ends it: the last one, and perhaps not all of it.
    pub is_cut: bool,
}

/// The lines of a file, in their order.
pub struct Lines<'a, R> {
    from: R,
    place: &'a str,
    number: u64,
    most: u64,
    line: Vec<u8>,
}

/// Of what there is too much, the first that is too many being on this line.
pub(crate) fn too_many(what: &str, most: u64, place: &str, number: u64) -> Error {
    let file = if place == STDIN { "FILE" } else { place };
    let way_out = format!("give it a part, as by: head -n {most} {file} | bywash simulate --trace -");
    config(format!("{place}, line {number}"), format!("more than {most} {what}; {way_out}"))
}

impl<'a, R: BufRead> Lines<'a, R> {
    /// Of what is read; `place` (a file name, or [`STDIN`]) is named in errors.
    pub fn new(from: R, place: &'a str) -> Self {
        Self { from, place, number: 0, most: LINES_MAX, line: Vec::new() }
    }

    /// The next one; none at the end.
    ///
    /// # Errors
    /// [`Error::Config`], naming file and line, for one that is too long or cannot be read, for one more than [`LINES_MAX`], and for what is compressed.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>> {
        self.number += 1;
        self.line.clear();
        let read = self.from.by_ref().take(BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line);
        let here = || format!("{}, line {}", self.place, self.number);
        read.map_err(|error| config(here(), error.to_string()))?;
        if let Some(unpacks) = (self.number == 1).then(|| unpacker(&self.line)).flatten() {
            let file = if self.place == STDIN { "FILE" } else { self.place };
            let reason = format!("it is compressed; have it unpacked, as by: {unpacks} {file} | bywash simulate --trace -");
            return Err(config(self.place.to_owned(), reason));
        }
        if self.line.len() > BYTES_MAX {
            let reason = format!(
                "longer than {} KiB, as no line of a log or recording is; check that it is the file meant, or cut its lines, as by: cut -b -65000",
                BYTES_MAX >> 10
            );
            return Err(config(here(), reason));
        }
        if self.number > self.most && !self.line.is_empty() {
            return Err(too_many("lines", self.most, self.place, self.number));
        }
        let ended = self.line.strip_suffix(b"\n");
        let whole = ended.unwrap_or(&self.line);
        let text = String::from_utf8_lossy(whole.strip_suffix(b"\r").unwrap_or(whole));
        Ok((!self.line.is_empty()).then_some(Line { number: self.number, text, is_cut: ended.is_none() }))
    }
}

/// What writes the text of a compressed file that begins like this.
fn unpacker(head: &[u8]) -> Option<&'static str> {
    let is_packed = |&&(from, magic, _): &&(usize, &[u8], &str)| head.get(from..).is_some_and(|head| head.starts_with(magic));
    PACKED.iter().find(is_packed).map(|(.., unpacks)| *unpacks)
}

fn config(place: String, reason: String) -> Error {
    Error::Config { place, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, repeat};

    #[test]
    fn lines_come_with_their_numbers_and_without_their_ends() {
        let mut lines = Lines::new(&b"one\r\n\ntwo"[..], "t");
        for (number, text, is_cut) in [(1, "one", false), (2, "", false), (3, "two", true)] {
            assert_eq!(lines.next_line().unwrap(), Some(Line { number, text: text.into(), is_cut }));
        }
        assert_eq!(lines.next_line().unwrap(), None);
        let full = "x".repeat(BYTES_MAX - 1) + "\n";
        assert!(Lines::new(full.as_bytes(), "t").next_line().unwrap().is_some(), "the longest");
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let said = Lines::new(BufReader::new(repeat(0)), "/dev/zero").next_line().unwrap_err().to_string();
        assert!(said.contains("/dev/zero, line 1") && said.contains("64 KiB"), "{said}");
    }

    #[test]
    fn a_file_without_an_end_is_refused() {
        let mut lines = Lines { most: 2, ..Lines::new(&b"a\nb\nc\n"[..], STDIN) };
        assert!(lines.next_line().unwrap().is_some() && lines.next_line().unwrap().is_some());
        let said = lines.next_line().unwrap_err().to_string();
        assert!(said.contains("stdin, line 3: more than 2 lines") && said.contains("head -n 2 FILE |"), "{said}");
        assert_eq!(Lines { most: 1, ..Lines::new(&b"a\n"[..], STDIN) }.next_line().unwrap().map(|line| line.number), Some(1));
    }

    #[test]
    fn what_is_compressed_is_called_so_with_what_unpacks_it() {
        let said = |head: &[u8], place: &str| Lines::new(head, place).next_line().unwrap_err().to_string();
        for (head, way_out) in [
            (&b"\x1f\x8b\x08\x00\x0a\x0a"[..], "zcat l.gz | bywash simulate --trace -"),
            (b"BZh91AY&SY", "bzcat l.gz"),
            (b"\xfd7zXZ\0", "xzcat"),
            (b"\x28\xb5\x2f\xfd", "zstdcat"),
        ] {
            assert!(said(head, "l.gz").contains(way_out), "{}", said(head, "l.gz"));
        }
        assert!(said(b"\x1f\x8b", STDIN).contains("zcat FILE"));
        assert!(Lines::new(&b"BZh - - x"[..], "t").next_line().is_ok());
    }
}
