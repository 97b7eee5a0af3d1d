//! Traces: what is remembered of a request. Never a key, never data, never an address.
//!
//! The text form is CSV with a header line, one request a line in the order in which they ended, times in nanoseconds since the recording began:
//!
//! ```csv
//! arrival_ns,client,session,algorithm,direction,bytes,engine,start_ns,done_ns,request,dispatched_ns,deadline_ns,switched,failed,reason,pid,uid,gids,program,calls
//! 1200,1,7,AES-256-GCM,encrypt,16384,ixp425,1900,2310,42,1800,,0,0,oldest,4711,1000,1000+48,nginx,1
//! 1300,1,7,AES-256-GCM,encrypt,16384,here,1300,2310,,,,,,,4711,1000,1000+48,nginx,4
//! # lost: 12
//! ```
//!
//! The fields from `request` to `reason` are those of a request that a broker served, and empty for one that its program computed in place; `calls` says in how many calls its program passed
//! the bytes. A last line that begins with `#` says how many requests are missing because the recorder did not keep up; without it none is, unless the
//! file could not be written to its end, which `bywash record` says. Recordings of before `calls` end with `program`, still older ones with `done_ns`, and are read as ever: the header says how many fields the lines have.
//!
//! Recordings may stand one after the other in a file, each with its header. What comes later is read as later, and of other clients,
//! also where the one before is cut in the line in which it begins: that line is an error.
//!
//! A last line that no line feed ends is part of one: whoever wrote it was killed, or its disk was full. It is no request.

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use crate::operation::Direction;
use crate::time::Time;
use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

/// The header line of a trace file.
pub const HEADER: &str = "arrival_ns,client,session,algorithm,direction,bytes,engine,start_ns,done_ns,\
request,dispatched_ns,deadline_ns,switched,failed,reason,pid,uid,gids,program,calls";

/// How many fields the lines of a trace file have: today's, those of before `calls`, and those of before what a broker knows.
const FIELDS: [usize; 3] = [20, 19, 9];

/// What the line begins with that says how many requests a recording lost.
const LOST: &str = "# lost: ";

/// Whether a line is the header of a trace file, of today's or an older one.
fn is_header(line: &str) -> bool {
    let all = HEADER.split(',');
    FIELDS.iter().any(|&count| all.clone().take(count).eq(line.split(',')))
}

/// Whether a line is a header, or one that another recording's last line was cut before.
pub fn ends_in_header(line: &str) -> bool {
    header_behind(line).is_some()
}

/// The header that a line is, or ends with: what was cut has no end of line before the next recording.
fn header_behind(line: &str) -> Option<&str> {
    let at = line.rfind(HEADER.split_inclusive(',').next()?)?;
    Some(&line[at..]).filter(|rest| is_header(rest))
}

/// The line at the end of a recording that lost so many requests.
pub fn lost_line(lost: u64) -> String {
    format!("{LOST}{lost}")
}

/// Whether the last line of a text is cut. See the [module](self).
pub fn is_cut(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('\n')
}

/// How many requests were lost, if a line is the one that says it.
pub fn lost(line: &str) -> Option<u64> {
    line.strip_prefix(LOST)?.parse().ok()
}

/// One request as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it arrived.
    pub arrival: Time,
    /// Which client, by the broker's running number.
    pub client: u32,
    /// Which session of that client.
    pub session: u32,
    /// What was asked.
    pub algorithm: Algorithm,
    /// Which way.
    pub direction: Direction,
    /// Bytes of input.
    pub bytes: u64,
    /// Where it ran: an engine's name, or `here` for in the caller's own place; empty if no engine ran it.
    pub engine: String,
    /// When the engine began.
    pub start: Time,
    /// When the result was there.
    pub done: Time,
    /// What the broker that served it knows besides.
    pub served: Option<Served>,
    /// Whose it is, if that was recorded.
    pub whose: Option<Arc<Whose>>,
    /// In how many calls of its program the bytes came, at least 1. One that a broker served came in one.
    pub calls: u32,
}

/// What a broker knows of a request that it served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The broker's number for it, by which `bywash explain` knows it.
    pub request: u64,
    /// When it was given to its engine.
    pub dispatched: Time,
    /// When it should have been done, if its tenant has a goal.
    pub deadline: Option<Time>,
    /// Whether its engine had to change to its session.
    pub switched: bool,
    /// Whether it ended with an error.
    pub failed: bool,
    /// Why it came before what else waited, in a word of the policy's; empty if that cannot say.
    pub reason: String,
}

/// The process behind a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Its number.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its groups.
    pub gids: Vec<u32>,
    /// Its command, by its own word.
    pub program: String,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Encrypt => "encrypt",
            Direction::Decrypt => "decrypt",
            Direction::Compute => "compute",
        };
        let Self { arrival, client, session, algorithm, bytes, engine, start, done, served, whose, calls, .. } = self;
        write!(f, "{},{client},{session},{algorithm},{direction},{bytes},{engine},{},{},", arrival.0, start.0, done.0)?;
        match served {
            Some(Served { request, dispatched, deadline, switched, failed, reason }) => {
                write!(f, "{request},{},", dispatched.0)?;
                deadline.map_or(Ok(()), |deadline| write!(f, "{}", deadline.0))?;
                write!(f, ",{},{},{reason},", u8::from(*switched), u8::from(*failed))?;
            }
            None => f.write_str(",,,,,,")?,
        }
        match whose {
            Some(whose) => whose.fmt(f)?,
            None => f.write_str(",,,")?,
        }
        write!(f, ",{calls}")
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},", self.pid, self.uid)?;
        for (place, gid) in self.gids.iter().enumerate() {
            write!(f, "{}{gid}", if place == 0 { "" } else { "+" })?;
        }
        // A program can call itself anything. What would end the field or the line, turn the text around it about, or begin a spreadsheet's formula, is not worth a language of escapes.
        let is_plain = |character: char| character.is_ascii_graphic() || character == ' ' || character.is_alphanumeric();
        let plain = |character: char| if is_plain(character) && !matches!(character, ',' | '"') { character } else { '?' };
        let named: String = self.program.chars().map(plain).collect();
        let formula = named.starts_with(['=', '+', '-', '@']);
        write!(f, ",{}{}", if formula { "?" } else { "" }, &named[usize::from(formula)..])
    }
}

/// The fields of a line, and what to say of one that cannot be read.
struct Fields<'a> {
    line: &'a str,
    fields: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    fn bad(&self, what: &str) -> Error {
        Error::Config { place: format!("trace line '{}'", self.line.chars().take(80).collect::<String>()), reason: what.to_owned() }
    }

    fn number<N: FromStr>(&self, place: usize, name: &str) -> Result<N> {
        self.fields[place].parse().map_err(|_| self.bad(&format!("{name} is not a number of its kind")))
    }

    fn time(&self, place: usize, name: &str) -> Result<Time> {
        self.number(place, name).map(Time)
    }

    /// 0 or 1.
    fn flag(&self, place: usize, name: &str) -> Result<bool> {
        match self.fields[place] {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.bad(&format!("{name} is neither 0 nor 1"))),
        }
    }

    /// What stands in these fields, if there is any of it.
    fn of<T>(&self, places: core::ops::Range<usize>, read: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        let is_there = self.fields.get(places).is_some_and(|fields| fields.iter().any(|field| !field.is_empty()));
        is_there.then(read).transpose()
    }

    fn served(&self) -> Result<Served> {
        Ok(Served {
            request: self.number(9, "request")?,
            dispatched: self.time(10, "dispatched_ns")?,
            deadline: self.of(11..12, || self.time(11, "deadline_ns"))?,
            switched: self.flag(12, "switched")?,
            failed: self.flag(13, "failed")?,
            reason: self.fields[14].to_owned(),
        })
    }

    fn calls(&self) -> Result<u32> {
        self.number(19, "calls").and_then(|calls| if calls > 0 { Ok(calls) } else { Err(self.bad("calls is 0")) })
    }

    fn whose(&self) -> Result<Arc<Whose>> {
        let gid = |text: &str| text.parse().map_err(|_| self.bad("gids are not numbers with + between them"));
        let gids = self.fields[17].split('+').filter(|text| !text.is_empty()).map(gid).collect::<Result<_>>()?;
        let program = self.fields[18].to_owned();
        Ok(Arc::new(Whose { pid: self.number(15, "pid")?, uid: self.number(16, "uid")?, gids, program }))
    }
}

impl FromStr for Record {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let fields = Fields { line, fields: line.split(',').collect() };
        if !FIELDS.contains(&fields.fields.len()) {
            return Err(fields.bad("20 fields expected, or the 19 or 9 of older recordings"));
        }
        let (arrival, done) = (fields.time(0, "arrival_ns")?, fields.time(8, "done_ns")?);
        if done < arrival {
            return Err(fields.bad("done_ns is before arrival_ns"));
        }
        Ok(Self {
            arrival,
            client: fields.number(1, "client")?,
            session: fields.number(2, "session")?,
            algorithm: fields.fields[3].parse()?,
            direction: match fields.fields[4] {
                "encrypt" => Direction::Encrypt,
                "decrypt" => Direction::Decrypt,
                "compute" => Direction::Compute,
                _ => return Err(fields.bad("direction is none of encrypt, decrypt, compute")),
            },
            bytes: fields.number(5, "bytes")?,
            engine: fields.fields[6].to_owned(),
            start: fields.time(7, "start_ns")?,
            done,
            served: fields.of(9..15, || fields.served())?,
            whose: fields.of(15..19, || fields.whose())?,
            calls: fields.of(19..20, || fields.calls())?.unwrap_or(1),
        })
    }
}

/// Understands a recording line by line, or several of them one after the other.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// How many fields a line has: as the header says, or the first line where there is none.
    fields: Option<usize>,
    /// When what is at hand begins, and how many clients there were before.
    begin: Time,
    clients: u32,
    /// The greatest of each so far.
    done: Time,
    next_client: u32,
    lost: u64,
    lacks_calls: bool,
}

impl Reader {
    /// The request of a line; none if it is empty, a header, or what says how many were [lost](Self::lost).
    ///
    /// # Errors
    /// [`Error::Config`], for one that cannot be read.
    pub fn read(&mut self, line: &str) -> Result<Option<Record>> {
        if line.is_empty() {
            return Ok(None);
        }
        let count = line.split(',').count();
        if let Some(header) = header_behind(line) {
            self.begin_another(header);
            if header == line {
                return Ok(None);
            }
            return Err(Fields { line, fields: Vec::new() }.bad("cut, and another recording begins behind it"));
        }
        if let Some(lost) = lost(line) {
            self.lost = self.lost.saturating_add(lost);
            return Ok(None);
        }
        if let Some(expected) = self.fields.filter(|&expected| expected != count) {
            let reason = format!("{count} fields, where the header says {expected}: part of a line, or of another recording");
            return Err(Fields { line, fields: Vec::new() }.bad(&reason));
        }
        let record = line.parse::<Record>()?.later(self.begin, self.clients);
        self.fields = Some(count);
        self.done = self.done.max(record.done);
        self.next_client = self.next_client.max(record.client.saturating_add(1));
        Ok(Some(record))
    }

    fn begin_another(&mut self, header: &str) {
        self.lacks_calls |= header != HEADER;
        (self.fields, self.begin, self.clients) = (Some(header.split(',').count()), self.done, self.next_client);
    }

    /// How many requests the recording lost so far, by its own word.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether it is of before `calls`, in part at least: in how many calls its messages came is not known.
    pub fn lacks_calls(&self) -> bool {
        self.lacks_calls
    }
}

impl Record {
    /// As it is behind another recording, which took so long and had so many clients.
    fn later(self, begin: Time, clients: u32) -> Self {
        let at = |time: Time| begin + time.0;
        let served = self.served.map(|served| Served { dispatched: at(served.dispatched), deadline: served.deadline.map(at), ..served });
        let (arrival, start, done, client) = (at(self.arrival), at(self.start), at(self.done), clients.saturating_add(self.client));
        Self { arrival, start, done, client, served, ..self }
    }
}

/// An error of a line of this place (a file name), with its number.
pub fn at_line(error: &Error, place: &str, number: u64) -> Error {
    Error::Config { place: format!("{place}, line {number}"), reason: error.to_string() }
}

/// Reads a recording, which is in the order in which requests ended: its requests in the order in which they arrived, but for a line that [is cut](is_cut). `place` (a file name) is named in
/// errors.
///
/// # Errors
/// [`Error::Config`], naming the line that cannot be read.
pub fn by_arrival(text: &str, place: &str) -> Result<Vec<Record>> {
    let whole = if is_cut(text) { text.rfind('\n').map_or("", |end| &text[..end]) } else { text };
    let mut reader = Reader::default();
    let read = |(number, line): (u64, &str)| reader.read(line).map_err(|error| at_line(&error, place, number)).transpose();
    let mut records = (1..).zip(whole.lines()).filter_map(read).collect::<Result<Vec<Record>>>()?;
    records.sort_by_key(|record| record.arrival);
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "1200,1,7,AES-256-GCM,encrypt,16384,here,1200,2310";
    const SERVED: &str = "1200,1,7,AES-256-GCM,encrypt,16384,ixp425,1900,2310,42,1800,,0,1,oldest,4711,1000,1000+48,nginx,1";
    const HERE: &str = "1300,1,7,AES-256-GCM,encrypt,16384,here,1300,2310,,,,,,,4711,1000,,nginx,4";

    #[test]
    fn a_recording_is_read_in_the_order_of_arrival() {
        let records = by_arrival(&format!("{HEADER}\n{HERE}\n{SERVED}\n"), "t.csv").unwrap();
        assert_eq!(records.iter().map(Record::to_string).collect::<Vec<_>>(), [SERVED, HERE]);
        assert!(by_arrival(&format!("{HEADER}\n{HERE}\nx\n"), "t.csv").unwrap_err().to_string().contains("t.csv, line 3"));
    }

    #[test]
    fn lines_round_trip() {
        let goal = SERVED.replace(",1800,,0", ",1800,2200,1");
        for line in [SERVED, HERE, &goal] {
            assert_eq!(line.parse::<Record>().unwrap().to_string(), line);
            assert_eq!(HEADER.split(',').count(), line.split(',').count());
        }
        let served = goal.parse::<Record>().unwrap().served.unwrap();
        assert_eq!((served.request, served.deadline, served.switched, served.failed), (42, Some(Time(2200)), true, true));
    }

    #[test]
    fn older_recordings_are_read() {
        let header = |fields: usize| HEADER.split(',').take(fields).collect::<Vec<_>>().join(",");
        let records = by_arrival(&format!("{}\n{OLD}\n", header(9)), "old.csv").unwrap();
        assert_eq!((records.len(), &records[0].served, &records[0].whose, records[0].calls), (1, &None, &None, 1));
        let before_calls = HERE.strip_suffix(",4").unwrap();
        let records = by_arrival(&format!("{}\n{before_calls}\n", header(19)), "old.csv").unwrap();
        assert_eq!((records.len(), records[0].calls, records[0].whose.is_some()), (1, 1, true));
        assert!(FIELDS.iter().all(|&fields| is_header(&header(fields))) && !is_header(&header(10)));
        for (fields, line, lacks) in [(20, HERE, false), (19, before_calls, true), (9, OLD, true)] {
            let mut reader = Reader::default();
            assert!(reader.read(&header(fields)).unwrap().is_none() && reader.read(line).unwrap().is_some());
            assert_eq!(reader.lacks_calls(), lacks);
        }
    }

    #[test]
    fn a_recording_says_what_it_lost() {
        let text = format!("{HEADER}\n{HERE}\n{}\n", lost_line(12));
        assert_eq!(text.lines().find_map(lost), Some(12));
        assert_eq!(by_arrival(&text, "t.csv").unwrap().len(), 1);
        assert!(by_arrival(&format!("{HEADER}\n# lost: many\n"), "t.csv").is_err());
    }

    #[test]
    fn part_of_a_line_is_no_older_line() {
        let cut = HERE.split(',').take(9).collect::<Vec<_>>().join(",");
        let shorter = cut.strip_suffix('0').unwrap();
        for part in [&cut, shorter, HERE.strip_suffix(",4").unwrap()] {
            let text = format!("{HEADER}\n{SERVED}\n{part}");
            assert!(is_cut(&text) && by_arrival(&text, "t.csv").unwrap().len() == 1, "{part}");
            let said = by_arrival(&format!("{text}\n"), "t.csv").unwrap_err().to_string();
            assert!(said.contains("t.csv, line 3") && said.contains("where the header says 20"), "{said}");
        }
        let headless = format!("{SERVED}\n{cut}\n");
        assert!(by_arrival(&headless, "t.csv").is_err() && by_arrival(&format!("{cut}\n{cut}\n"), "t.csv").is_ok());
        assert_eq!(by_arrival("arrival_ns,cli", "t.csv").unwrap(), []);
    }

    #[test]
    fn recordings_one_after_the_other_are_read_so() {
        let one = format!("{HEADER}\n{SERVED}\n{HERE}\n");
        let old = format!("{}\n{OLD}\n{}\n", HEADER.split(',').take(9).collect::<Vec<_>>().join(","), lost_line(3));
        let records = by_arrival(&[&one, HEADER, "\n", &old, &one].map(String::from).concat(), "t.csv").unwrap();
        let of = |record: &Record| (record.arrival.0, record.done.0, record.client);
        assert_eq!(
            records.iter().map(of).collect::<Vec<_>>(),
            [(1200, 2310, 1), (1300, 2310, 1), (3510, 4620, 3), (5820, 6930, 5), (5920, 6930, 5)]
        );
        let dispatched = records.iter().filter_map(|record| record.served.as_ref()).map(|served| served.dispatched.0);
        assert_eq!(dispatched.collect::<Vec<_>>(), [1800, 6420]);
        let mut reader = Reader::default();
        old.lines().for_each(|line| _ = reader.read(line).unwrap());
        assert_eq!((reader.lost(), reader.lacks_calls()), (3, true));
    }

    #[test]
    fn a_recording_behind_one_that_is_cut_is_another() {
        let old = HEADER.split(',').take(9).collect::<Vec<_>>().join(",");
        for (cut, header, next) in [("1300,1,7,AES-2", HEADER, SERVED), (SERVED, HEADER, SERVED), ("arrival_ns,cli", &old, OLD)] {
            let mut reader = Reader::default();
            assert!(reader.read(HEADER).unwrap().is_none() && reader.read(SERVED).unwrap().is_some());
            let said = reader.read(&format!("{cut}{header}")).unwrap_err().to_string();
            assert!(said.contains("cut, and another recording begins"), "{said}");
            let later = reader.read(next).unwrap().unwrap();
            assert_eq!((later.arrival, later.client, reader.lacks_calls()), (Time(3510), 3, header != HEADER));
        }
    }

    #[test]
    fn no_name_of_a_program_ends_its_field() {
        let mut record: Record = SERVED.parse().unwrap();
        record.whose = Some(Arc::new(Whose { program: "a,\"b\nc".into(), ..Whose::default() }));
        let read: Record = record.to_string().parse().unwrap();
        assert_eq!(read.whose.unwrap().program, "a??b?c");
        for (program, written) in [("=cmd()", "?cmd()"), ("a\u{202e}b", "a?b"), ("größe", "größe"), ("", "")] {
            record.whose = Some(Arc::new(Whose { program: program.into(), ..Whose::default() }));
            assert!(record.to_string().ends_with(&format!(",{written},1")), "{record}");
        }
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        let error = |line: &str| line.parse::<Record>().unwrap_err().to_string();
        assert!(error(&OLD.replace("1200,1,", "x,1,")).contains("arrival_ns"));
        assert!(error("1,2").contains("20 fields"));
        assert!(error(&OLD.replace("2310", "1199")).contains("done_ns is before arrival_ns"));
        assert!(error(&HERE.replace(",4", ",0")).contains("calls is 0"));
        assert!(error(&SERVED.replace(",0,1,oldest", ",0,2,oldest")).contains("failed is neither"));
        assert!(error(&SERVED.replace("1000+48", "1000+x")).contains("gids"));
        assert!(error(&SERVED.replace(",42,", ",,")).contains("request"));
    }
}
