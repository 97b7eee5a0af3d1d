//! Socket buffers: a message of 1 MiB comes as 17 datagrams of some 62 KB at once. What does not fit is lost, and sent again some 30 ms later.

use super::config::{Kind, Security};
use crate::doctor::Finding;

/// What 1 MiB in fragments needs: the kernel counts its own bookkeeping of each datagram too.
const NEEDED: u64 = 2 << 20;

const CYCLONE: &str = "<Internal><SocketReceiveBufferSize min=\"default\" max=\"4MB\"/></Internal>";
const FAST_DDS: &str = "<receiveBufferSize>4194304</receiveBufferSize> of the UDPv4 transport";

/// Looks at what is asked for and at what the kernel grants.
pub(super) fn look(security: &Security) -> Option<Finding> {
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let (default, most) = (number("/proc/sys/net/core/rmem_default")?, number("/proc/sys/net/core/rmem_max")?);
    let least = security.receive_least.filter(|least| *least > most.max(default));
    Some(match least {
        Some(least) => Finding::broken(
            "sockets",
            format!(
                "SocketReceiveBufferSize asks for at least {} KiB, the kernel grants {}: no participant starts",
                least >> 10,
                most >> 10
            ),
            format!("sysctl -w net.core.rmem_max={least}, or min=\"default\""),
        ),
        None => judge(security.kind, security.receive_buffer, default, most),
    })
}

fn judge(kind: Kind, asked: Option<u64>, default: u64, most: u64) -> Finding {
    // Cyclone asks for 1 MiB by itself, and takes less.
    let wanted = asked.unwrap_or(if kind == Kind::Cyclone { 1 << 20 } else { default });
    let granted = wanted.min(most.max(default));
    if granted >= NEEDED {
        return Finding::ok("sockets", format!("receive {} KiB", granted >> 10));
    }
    let how = match kind {
        Kind::Cyclone => CYCLONE.to_owned(),
        Kind::FastDds => FAST_DDS.to_owned(),
        Kind::Enclave => format!("for rmw_cyclonedds_cpp {CYCLONE}; for rmw_fastrtps_cpp {FAST_DDS}"),
    };
    let kernel = if most < NEEDED { "sysctl -w net.core.rmem_max=4194304; and " } else { "" };
    let found = format!(
        "receive {} KiB ({} asked for, the kernel grants {}): secured messages of 1 MiB lose fragments and take some 30 ms",
        granted >> 10,
        asked.map_or("nothing".into(), |asked| format!("{} KiB", asked >> 10)),
        most >> 10
    );
    Finding::note("sockets", found, format!("{kernel}{how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn what_is_granted_counts() {
        let level = |asked, most| judge(Kind::Cyclone, asked, 212_992, most).level;
        assert_eq!(level(Some(4 << 20), 4 << 20), Level::Ok);
        assert_eq!(level(Some(4 << 20), 212_992), Level::Note);
        assert_eq!(level(None, 4 << 20), Level::Note);
        let finding = judge(Kind::FastDds, None, 212_992, 212_992);
        assert!(finding.mend.unwrap().contains("sysctl") && finding.found.contains("208 KiB"));
    }
}
