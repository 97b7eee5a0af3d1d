//! Fast DDS's own latency test, from Debian's source package: its publisher against its subscriber. In its whole the programs, but for what they are told, are the vendor's.

use super::fastdds::{Latency, compile};
use crate::{Error, Result, io_error};
use bywash_dds_material::Participant;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What fetches and unpacks a source package, in a checkout.
const FETCH: &str = "scripts/debian-source";

/// The program, compiled.
pub(super) struct LatencyTest(PathBuf);

impl LatencyTest {
    /// Fetches and compiles it, once: it is kept beside the source. Says in words why it cannot be had.
    pub(super) fn compile() -> std::result::Result<Self, String> {
        let fetched = Command::new(FETCH).arg("fastdds").stderr(Stdio::null()).output();
        let fetched =
            fetched.map_err(|_| format!("there is no {FETCH} here, which fetches its source; run this in a checkout of Bywash"))?;
        if !fetched.status.success() {
            return Err("Debian's source package fastdds cannot be fetched (apt, network)".into());
        }
        let source = PathBuf::from(String::from_utf8_lossy(&fetched.stdout).trim());
        let program = source.with_file_name("LatencyTest");
        if !program.is_file() {
            let folder = source.join("test/performance/latency");
            let files = ["main_LatencyTest", "LatencyTestPublisher", "LatencyTestSubscriber", "LatencyTestTypes"];
            let files = files.map(|file| folder.join(file).with_extension("cpp"));
            let includes =
                ["optionparser", "asio/asio/include"].map(|part| format!("-I{}", source.join("thirdparty").join(part).display()));
            let mut options = vec!["-std=c++17", "-O1", "-w", "-DASIO_STANDALONE"];
            options.extend(includes.iter().map(String::as_str));
            let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
            // Whole or not at all: the next run takes what is there.
            let part = source.with_file_name("LatencyTest.part");
            compile("c++", &options, &files, &part, &["-lfastrtps", "-lfastcdr", "-lpthread"], "libfastrtps-dev")?;
            std::fs::rename(&part, &program).map_err(|error| io_error("rename", &part, &error).0)?;
        }
        Ok(Self(program))
    }

    /// Runs both sides, with a library preloaded and its mode, if there is one.
    pub(super) fn run(
        &self,
        (bytes, samples): (usize, usize),
        domain: u32,
        participants: Option<&[Participant; 2]>,
        door: Option<(&Path, &str)>,
        folder: &Path,
    ) -> Result<Latency> {
        let (profiles, sizes) = (folder.join("latencytest.xml"), folder.join("latencytest.csv"));
        std::fs::write(&profiles, xml(participants)).map_err(|error| io_error("write", &profiles, &error))?;
        std::fs::write(&sizes, format!("{bytes};")).map_err(|error| io_error("write", &sizes, &error))?;
        let command = |side: &str| {
            let mut command = Command::new(&self.0);
            command.args([side, "--reliability=reliable", "--domain", &domain.to_string(), "--xml"]).arg(&profiles).arg("-f").arg(&sizes);
            for variable in ["LD_PRELOAD", "BYWASH_DDS", "BYWASH_DDS_TALLY", "OPENSSL_CONF"] {
                command.env_remove(variable);
            }
            if let Some((library, mode)) = door {
                command.env("LD_PRELOAD", library).env("BYWASH_DDS", mode).env("BYWASH_SOCKET", "none");
            }
            command
        };
        let start = |error: std::io::Error| Error(format!("cannot start {}: {error}", self.0.display()));
        let mut subscriber = command("subscriber").stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(start)?;
        let publisher = command("publisher").args(["-s", &samples.to_string(), "-n", "1"]).output().map_err(start);
        // It has been told to end, if it was reached; it was started here.
        let _ = subscriber.kill();
        let _ = subscriber.wait();
        let publisher = publisher?;
        parse(&String::from_utf8_lossy(&publisher.stdout), bytes).ok_or_else(|| {
            Error(format!("LatencyTest has no figures ({}): {}", publisher.status, String::from_utf8_lossy(&publisher.stderr).trim()))
        })
    }
}

/// Its line of this size: bytes, samples, deviation, mean, least, median and others, halves of round trips in us.
fn parse(said: &str, bytes: usize) -> Option<Latency> {
    said.lines().find_map(|line| {
        let mut fields = line.split(',').map(|field| field.trim().parse::<f64>());
        (fields.next()?.ok()? == bytes as f64).then_some(())?;
        let (min_us, median_us) = (fields.nth(3)?.ok()?, fields.next()?.ok()?);
        Some(Latency { min_us, median_us })
    })
}

/// Profiles for both sides: over UDP on the loopback alone, with buffers that 1 MiB fits in, as for our own program.
fn xml(participants: Option<&[Participant; 2]>) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<dds xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\"><profiles>
<transport_descriptors><transport_descriptor><transport_id>udp</transport_id><type>UDPv4</type>
<sendBufferSize>4194304</sendBufferSize><receiveBufferSize>4194304</receiveBufferSize>
<interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList></transport_descriptor></transport_descriptors>
"
    .to_owned();
    for (index, (side, [writes, reads])) in [("sub", ["sub2pub", "pub2sub"]), ("pub", ["pub2sub", "sub2pub"])].into_iter().enumerate() {
        let security = participants.map_or_else(String::new, |sides| sides[index].fastdds_property_policy());
        text += &format!(
            "<participant profile_name=\"{side}_participant_profile\"><rtps><name>{side}</name>{security}
<useBuiltinTransports>false</useBuiltinTransports><userTransports><transport_id>udp</transport_id></userTransports></rtps></participant>
"
        );
        for (kind, topic) in [("publisher", writes), ("subscriber", reads)] {
            text += &format!(
                "<{kind} profile_name=\"{side}_{kind}_profile\"><topic><name>latency_interprocess_{topic}</name><dataType>LatencyType</dataType><kind>NO_KEY</kind></topic>
<qos><reliability><kind>RELIABLE</kind></reliability><durability><kind>VOLATILE</kind></durability><data_sharing><kind>OFF</kind></data_sharing></qos></{kind}>
"
            );
        }
    }
    text + "</profiles></dds>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_table_is_read() {
        let said = "Printing round-trip times in us, statistics for 1000 samples\n   Bytes, Samples,   stdev,    mean,     min,     50%,     90%\n\
            --------,--------,--------,--------,--------,--------,--------,\n    1024,    1000,  53.456, 220.744, 167.054, 206.613, 266.009\n";
        assert_eq!(parse(said, 1024), Some(Latency { min_us: 167.054, median_us: 206.613 }));
        assert_eq!((parse(said, 1000), parse("EVERYTHING STOPPED FINE", 1024)), (None, None));
    }
}
