//! Traces: what is remembered of a request. Never a key, never data, never an address.
//!
//! The text form is CSV with a header line, one request a line in the order in which they ended, times in nanoseconds since the recording began:
//!
//! ```csv
//! arrival_ns,client,session,algorithm,direction,bytes,engine,start_ns,done_ns
//! 1200,1,7,AES-256-GCM,encrypt,16384,here,1200,2310
//! ```

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use crate::operation::Direction;
use crate::time::Time;
use core::fmt;
use core::str::FromStr;

/// The header line of a trace file.
pub const HEADER: &str = "arrival_ns,client,session,algorithm,direction,bytes,engine,start_ns,done_ns";

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
    /// Where it ran: an engine's name, or `here` for in the caller's own place.
    pub engine: String,
    /// When the engine began.
    pub start: Time,
    /// When the result was there.
    pub done: Time,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Encrypt => "encrypt",
            Direction::Decrypt => "decrypt",
            Direction::Compute => "compute",
        };
        let Self { arrival, client, session, algorithm, bytes, engine, start, done, .. } = self;
        write!(f, "{},{client},{session},{algorithm},{direction},{bytes},{engine},{},{}", arrival.0, start.0, done.0)
    }
}

impl FromStr for Record {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let bad = |what: &str| Error::Config {
            place: format!("trace line '{}'", line.chars().take(80).collect::<String>()),
            reason: what.to_owned(),
        };
        let fields: Vec<&str> = line.split(',').collect();
        let [arrival, client, session, algorithm, direction, bytes, engine, start, done] = fields[..] else {
            return Err(bad("9 fields expected"));
        };
        let number = |text: &str, name: &str| text.parse::<u64>().map_err(|_| bad(&format!("{name} is not a number")));
        let small = |text: &str, name: &str| text.parse::<u32>().map_err(|_| bad(&format!("{name} is not a 32-bit number")));
        Ok(Self {
            arrival: Time(number(arrival, "arrival_ns")?),
            client: small(client, "client")?,
            session: small(session, "session")?,
            algorithm: algorithm.parse()?,
            direction: match direction {
                "encrypt" => Direction::Encrypt,
                "decrypt" => Direction::Decrypt,
                "compute" => Direction::Compute,
                _ => return Err(bad("direction is none of encrypt, decrypt, compute")),
            },
            bytes: number(bytes, "bytes")?,
            engine: engine.to_owned(),
            start: Time(number(start, "start_ns")?),
            done: Time(number(done, "done_ns")?),
        })
    }
}

/// Reads a recording, which is in the order in which requests ended: its requests in the order in which they arrived. `place` (a file name) is named in errors.
///
/// # Errors
/// [`Error::Config`], naming the line that cannot be read.
pub fn by_arrival(text: &str, place: &str) -> Result<Vec<Record>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && *line != HEADER);
    let record = |(number, line): (usize, &str)| {
        line.parse().map_err(|error: Error| Error::Config { place: format!("{place}, line {}", number + 1), reason: error.to_string() })
    };
    let mut records = lines.map(record).collect::<Result<Vec<Record>>>()?;
    records.sort_by_key(|record| record.arrival);
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_read_in_the_order_of_arrival() {
        let (late, soon) = ("1300,1,7,AES-256-GCM,encrypt,16,here,1300,1400", "1200,1,7,AES-256-GCM,encrypt,16384,here,1200,2310");
        let records = by_arrival(&format!("{HEADER}\n{late}\n{soon}\n"), "t.csv").unwrap();
        assert_eq!(records.iter().map(Record::to_string).collect::<Vec<_>>(), [soon, late]);
        assert!(by_arrival(&format!("{HEADER}\n{late}\nx\n"), "t.csv").unwrap_err().to_string().contains("t.csv, line 3"));
    }

    #[test]
    fn lines_round_trip() {
        let line = "1200,1,7,AES-256-GCM,encrypt,16384,here,1200,2310";
        assert_eq!(line.parse::<Record>().unwrap().to_string(), line);
        assert_eq!(HEADER.split(',').count(), line.split(',').count());
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        let error = "x,1,7,AES-256-GCM,encrypt,16384,here,1,2".parse::<Record>().unwrap_err().to_string();
        assert!(error.contains("arrival_ns"), "{error}");
        assert!("1,2".parse::<Record>().unwrap_err().to_string().contains("9 fields"));
    }
}
