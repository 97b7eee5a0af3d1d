//! Keys as they are shown.

use crate::failure::Failure;
use bywash_protocol::keys::KeyInfo;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The list, as a table or as JSON.
pub(super) fn list(keys: &[KeyInfo], json: bool) -> Result<String, Failure> {
    if json {
        let text = serde_json::to_string_pretty(keys).map_err(|error| Failure::failed(error.to_string()))?;
        return Ok(format!("{text}\n"));
    }
    if keys.is_empty() {
        return Ok("no keys; make one with `bywash key generate NAME`, or take one over with `bywash key import NAME --from FILE`\n".into());
    }
    let rows: Vec<[String; 7]> = keys.iter().map(row).collect();
    let head = ["NAME", "KIND", "SHA-256", "MADE", "USERS", "MAY", "USED"].map(str::to_owned);
    let width = |column: usize| rows.iter().chain([&head]).map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    for row in [&head].into_iter().chain(&rows) {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    Ok(out)
}

fn row(key: &KeyInfo) -> [String; 7] {
    let (users, groups) = (key.policy.uids.iter().map(u32::to_string), key.policy.gids.iter().map(|gid| format!("group {gid}")));
    let users: Vec<String> = ["owner".to_owned()].into_iter().chain(users).chain(groups).collect();
    let rate = key.policy.rate.map_or_else(String::new, |rate| format!(", {rate}/s"));
    let old = key.old_until.map_or_else(String::new, |until| format!(", old until {}", minute(until)));
    [
        key.name.clone(),
        key.algorithm.to_string(),
        key.fingerprint[..16.min(key.fingerprint.len())].to_owned(),
        format!("{}{old}", date(key.rotated.unwrap_or(key.created))),
        users.join(","),
        format!("{}{rate}", key.policy.uses_in_words()),
        key.used.map_or_else(|| "-".to_owned(), |used| used.to_string()),
    ]
}

fn date(seconds: u64) -> String {
    rfc3339(seconds).chars().take(10).collect()
}

/// What may be minutes from now has its minute, in UTC.
fn minute(seconds: u64) -> String {
    rfc3339(seconds).replace('T', " ").chars().take(16).chain(['Z']).collect()
}

fn rfc3339(seconds: u64) -> String {
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// A public key as PEM.
pub(super) fn public(der: &[u8]) -> Result<String, Failure> {
    pem_rfc7468::encode_string("PUBLIC KEY", pem_rfc7468::LineEnding::LF, der).map_err(|error| Failure::failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bywash_protocol::keys::{KeyAlgorithm, KeyPolicy};

    #[test]
    fn a_key_is_a_line() {
        let policy = KeyPolicy { uids: vec![33], gids: vec![48], rate: Some(100), ..KeyPolicy::default() };
        let fingerprint = "0123456789abcdef".repeat(4);
        let (name, uri) = ("web".to_owned(), "bywash:web".to_owned());
        let (algorithm, created) = (KeyAlgorithm::P256, 1_795_300_000);
        let key = KeyInfo { name, uri, algorithm, fingerprint, created, rotated: None, old_until: None, policy, used: Some(7) };
        let text = list(&[key], false).unwrap();
        let line = text.lines().nth(1).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["web", "p256", "0123456789abcdef", "2026-11-21", "owner,33,group", "48", "sign,", "100/s", "7"]
        );
        assert!(list(&[], false).unwrap().contains("bywash key generate"));
    }
}
