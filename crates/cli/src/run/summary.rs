//! What a run's cryptography did, said in one line at its end.

use crate::terminal::{bytes, thousands};
use bywash_client::Client;
use bywash_core::Algorithm;
use serde::Serialize;

/// More algorithms than this make the line too long.
const NAMED_MAX: usize = 4;

/// What ran where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Account {
    /// Processes of the run that used the provider or `/dev/crypto` and reached the broker.
    pub(crate) processes: u64,
    /// In the programs' own place, as their processes say.
    pub(crate) here: Vec<Line>,
    /// At the broker, by engine.
    pub(crate) broker: Vec<Line>,
    /// The engines among them whose times are a model's.
    pub(crate) modelled: Vec<String>,
    /// Another broker took the place of the first one meanwhile. What was done before is in that one's account, and not in this.
    pub(crate) replaced: bool,
}

/// One algorithm in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) algorithm: String,
    /// `here`, or the engine's name.
    pub(crate) engine: String,
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    /// Batches in which operations were computed side by side in the program's own place.
    pub(crate) batches: u64,
    /// Operations in them.
    pub(crate) batched: u64,
}

impl Account {
    /// The line, without the `bywash: ` before it. `command` is named in the advice when nothing was routed.
    pub(crate) fn summary(&self, command: &str) -> String {
        let text = self.of_one_broker(command);
        if self.replaced {
            text + "; the broker was replaced during the run, and what was done before that is not counted here"
        } else {
            text
        }
    }

    fn of_one_broker(&self, command: &str) -> String {
        if self.processes == 0 {
            let chacha = if Client::has_solo(Algorithm::ChaCha20Poly1305) { "" } else { "ChaCha20-Poly1305, " };
            return format!(
                "nothing was routed: no process used the provider or /dev/crypto. Either there was no cryptography, or it is left to OpenSSL \
                 (digests, AES-CCM, -CFB and -OFB, {chacha}legacy ciphers), or it is not the system's OpenSSL's (Go, rustls, BoringSSL, static builds); see \
                 `bywash doctor -- {command}`"
            );
        }
        if self.here.is_empty() && self.broker.is_empty() {
            let (number, noun) = (thousands(self.processes), if self.processes == 1 { "process" } else { "processes" });
            return format!("nothing was routed: {number} {noun} opened sessions, but computed nothing with them");
        }
        let modelled = if self.modelled.is_empty() { "none".to_owned() } else { self.modelled.join(", ") };
        format!(
            "{} here{}, {} at the broker{}; modelled: {modelled}",
            count(&self.here),
            named(&self.here),
            number(&self.broker),
            named(&self.broker)
        )
    }
}

/// What share of the operations was computed side by side, and how many at a time in the mean. The others were computed by themselves.
fn batches(line: &Line) -> String {
    if line.batches == 0 {
        return String::new();
    }
    let share = 100.0 * line.batched as f64 / line.operations.max(1) as f64;
    format!(", {share:.0} % in batches of {:.1}", line.batched as f64 / line.batches as f64)
}

fn total(lines: &[Line]) -> u64 {
    lines.iter().map(|line| line.operations).fold(0, u64::saturating_add)
}

fn number(lines: &[Line]) -> String {
    thousands(total(lines))
}

fn count(lines: &[Line]) -> String {
    let noun = if total(lines) == 1 { "operation" } else { "operations" };
    format!("{} {noun}", number(lines))
}

/// The heaviest algorithms: bulk by its bytes, public-key operations by their number.
fn named(lines: &[Line]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| core::cmp::Reverse(weight(line)));
    let mut names: Vec<String> =
        lines.iter().take(NAMED_MAX).map(|line| format!("{} {}{}", line.algorithm, amount(line), batches(line))).collect();
    if lines.len() > NAMED_MAX {
        names.push(format!("{} more", lines.len() - NAMED_MAX));
    }
    format!(" ({})", names.join("; "))
}

fn is_public_key(line: &Line) -> bool {
    line.algorithm.parse().is_ok_and(bywash_core::Algorithm::is_public_key)
}

/// A public-key operation weighs as much as a megabyte: both take some 100 us.
fn weight(line: &Line) -> u64 {
    if is_public_key(line) { line.operations.saturating_mul(1 << 20) } else { line.bytes }
}

fn amount(line: &Line) -> String {
    if is_public_key(line) { thousands(line.operations) } else { bytes(line.bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(algorithm: &str, engine: &str, operations: u64, bytes: u64) -> Line {
        Line { algorithm: algorithm.into(), engine: engine.into(), operations, bytes, batches: 0, batched: 0 }
    }

    #[test]
    fn batches_are_told_with_their_size() {
        let here = vec![Line { batches: 10, batched: 75, ..line("RSA-2048 private", "here", 100, 25_600) }];
        let text = Account { processes: 1, here, ..Account::default() }.summary("x");
        assert!(text.starts_with("100 operations here (RSA-2048 private 100, 75 % in batches of 7.5), 0 at"), "{text}");
    }

    #[test]
    fn what_ran_where() {
        let here = vec![line("RSA-2048 private", "here", 812, 207_872), line("AES-256-GCM", "here", 11_533, 1_200_000_000)];
        let account = Account { processes: 1, here, ..Account::default() };
        assert_eq!(
            account.summary("x"),
            "12,345 operations here (AES-256-GCM 1.2 GB; RSA-2048 private 812), 0 at the broker; modelled: none"
        );
    }

    #[test]
    fn modelled_engines_are_named() {
        let broker = vec![line("AES-128-CBC", "fpga", 2, 32)];
        let account = Account { processes: 1, broker, modelled: vec!["fpga".into()], ..Account::default() };
        assert_eq!(account.summary("x"), "0 operations here, 2 at the broker (AES-128-CBC 32 B); modelled: fpga");
    }

    #[test]
    fn many_algorithms_are_cut_short() {
        let here = ["AES-128-GCM", "AES-256-GCM", "AES-128-CTR", "AES-256-CTR", "AES-128-CBC", "X25519"];
        let here = here.iter().map(|name| line(name, "here", 1, 100)).collect();
        let text = Account { processes: 1, here, ..Account::default() }.summary("x");
        assert!(text.contains("X25519 1; ") && text.contains("2 more"), "{text}");
    }

    #[test]
    fn nothing_routed_says_why() {
        assert!(Account::default().summary("caddy").contains("bywash doctor -- caddy"));
        assert!(!Account::default().summary("caddy").contains("replaced"));
        assert!(Account { replaced: true, ..Account::default() }.summary("caddy").contains("the broker was replaced during the run"));
        let opened = Account { processes: 2, ..Account::default() };
        assert!(opened.summary("x").contains("2 processes opened sessions"));
    }
}
