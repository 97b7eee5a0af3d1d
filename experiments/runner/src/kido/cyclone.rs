//! Cyclone DDS: its own `ddsperf`, ping against pong.

use super::fastdds::Latency;
use crate::{Error, Result};
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether it is here.
pub(super) fn is_here() -> bool {
    Command::new("ddsperf").arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs both sides for so many seconds, each with its configuration (`CYCLONEDDS_URI`), with a library preloaded if there is one.
pub(super) fn run(bytes: usize, seconds: u32, domain: u32, uris: &[String; 2], preloaded: Option<&Path>) -> Result<Latency> {
    let command = |uri: &str, seconds: u32| {
        let mut command = Command::new("ddsperf");
        command.args(["-D", &seconds.to_string(), "-i", &domain.to_string()]).env("CYCLONEDDS_URI", uri).env_remove("LD_PRELOAD");
        if let Some(library) = preloaded {
            command.env("LD_PRELOAD", library);
        }
        command
    };
    let start = |error: std::io::Error| Error(format!("cannot start ddsperf: {error}"));
    let mut pong = command(&uris[0], seconds + 2).arg("pong").stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(start)?;
    let mut ping = command(&uris[1], seconds);
    let asked = ping.args(["ping", "waitset", "size", &bytes.to_string()]).output().map_err(start);
    // It ends by itself a little later, too; it was started here.
    let _ = pong.kill();
    let _ = pong.wait();
    let said = asked?.stdout;
    parse(&String::from_utf8_lossy(&said))
        .ok_or_else(|| Error("ddsperf had no answers; is its security material taken? see ddsperf's own messages".into()))
}

/// Its lines are of a second each: the least minimum, and the median of the last. They are half round trips.
fn parse(said: &str) -> Option<Latency> {
    let field = |line: &str, name: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != name);
        words.nth(1)?.strip_suffix("us")?.parse::<f64>().ok()
    };
    let lines = said.lines().filter_map(|line| Some((field(line, "min")?, field(line, "50%")?)));
    lines.reduce(|(least, _), (min, median)| (least.min(min), median)).map(|(min_us, median_us)| Latency { min_us, median_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_are_read() {
        let said = "[1] participant vm:1: new (self)\n\
            [1] 2.047  vm:2 size 1024 mean 78.786us min 14.362us 50% 25.883us 90% 45.064us 99% 1751.074us max 22602.207us cnt 6592\n\
            [1] 3.000  vm:2 size 1024 mean 82.313us min 15.859us 50% 30.732us 90% 46.827us 99% 1544.292us max 34366.648us cnt 5774\n";
        assert_eq!(parse(said), Some(Latency { min_us: 14.362, median_us: 30.732 }));
        assert_eq!(parse("[1] participant vm:1: new (self)\n"), None);
    }
}
