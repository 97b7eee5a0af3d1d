//! Mixes: traffic as somebody really has it, as shares of operations with their sizes and how often a key is new.

use crate::texts;
use bywash_core::{Algorithm, Direction, OwnedOperation, Result, SessionParams};
use serde::Deserialize;
use std::path::Path;

/// The mixes that come along, by the name they are called by.
const MIXES: &[(&str, &str)] =
    &[("tls", include_str!("mixes/tls.toml")), ("files", include_str!("mixes/files.toml")), ("dds", include_str!("mixes/dds.toml"))];

/// A mix as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mix {
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) title: String,
    /// Operations of one run through it.
    count: usize,
    part: Vec<Part>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    algorithm: String,
    direction: Way,
    /// Sizes in bytes, each as often as the others.
    bytes: Vec<usize>,
    /// Of associated data, in bytes.
    #[serde(default)]
    aad: usize,
    /// How many of the operations are of this part, against the other parts' shares.
    share: f64,
    /// After how many operations of this part the key is a new one; never if not said.
    new_key_every: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Encrypt,
    Decrypt,
    Compute,
}

/// One operation of a mix.
pub(crate) struct Step {
    pub(crate) params: SessionParams,
    pub(crate) operation: OwnedOperation,
    /// Steps of one number share a session, unless the key is new.
    pub(crate) session: usize,
    pub(crate) new_key: bool,
}

impl std::str::FromStr for Mix {
    type Err = String;

    /// By name, or the file that says it.
    fn from_str(name: &str) -> core::result::Result<Self, String> {
        let known = MIXES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        let is_file = known.is_none() && name.ends_with(".toml");
        let text = match known {
            Some(text) => text,
            None if is_file => texts::whole(Path::new(name)).map_err(|failure| failure.message)?,
            None => {
                let names: Vec<&str> = MIXES.iter().map(|(name, _)| *name).collect();
                return Err(format!("no mix '{name}'; there are {}, and your own in a file that ends with .toml", names.join(", ")));
            }
        };
        let mix: Self = toml::from_str(&text).map_err(|error| format!("{name}: {}", error.message()))?;
        mix.check().map_err(|reason| format!("{name}: {reason}"))?;
        Ok(Self { name: name.to_owned(), ..mix })
    }
}

impl Mix {
    fn check(&self) -> core::result::Result<(), String> {
        if self.part.is_empty() || !(1..=100_000).contains(&self.count) {
            return Err("needs at least one part, and a count of 1 to 100000".into());
        }
        for part in &self.part {
            let algorithm = part.algorithm.parse::<Algorithm>().map_err(|error| error.to_string())?;
            if part.bytes.is_empty() || !(part.share > 0.0 && part.share.is_finite()) || part.new_key_every == Some(0) {
                return Err(format!("{algorithm}: needs bytes, a share above 0, and new_key_every of 1 or more"));
            }
            if algorithm.is_public_key() || super::job::directions(algorithm).iter().all(|way| *way != part.direction.into()) {
                return Err(format!("{algorithm} cannot {:?} in a mix", part.direction));
            }
        }
        Ok(())
    }

    /// The operations of one run, in an order that spreads each part evenly.
    pub(crate) fn steps(&self) -> Result<Vec<Step>> {
        let whole: f64 = self.part.iter().map(|part| part.share).sum();
        let mut due: Vec<f64> = vec![0.0; self.part.len()];
        let mut done: Vec<usize> = vec![0; self.part.len()];
        let mut steps = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            due.iter_mut().zip(&self.part).for_each(|(due, part)| *due += part.share / whole);
            // The part that lags behind its share the most.
            let next = (0..due.len()).max_by(|&a, &b| due[a].total_cmp(&due[b])).unwrap_or(0);
            due[next] -= 1.0;
            steps.push(self.part[next].step(next, done[next])?);
            done[next] += 1;
        }
        Ok(steps)
    }
}

impl Part {
    fn step(&self, session: usize, number: usize) -> Result<Step> {
        let bytes = self.bytes[number % self.bytes.len()];
        let (params, operation) = super::job::operation(self.algorithm.parse()?, self.direction.into(), bytes, self.aad)?;
        let new_key = self.new_key_every.is_some_and(|every| number.is_multiple_of(every));
        Ok(Step { params, operation, session, new_key })
    }
}

impl From<Way> for Direction {
    fn from(way: Way) -> Self {
        match way {
            Way::Encrypt => Self::Encrypt,
            Way::Decrypt => Self::Decrypt,
            Way::Compute => Self::Compute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(text: &str) -> core::result::Result<Mix, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().parse()
    }

    #[test]
    fn those_that_come_along_can_be_run() {
        for (name, _) in MIXES {
            let mix: Mix = name.parse().unwrap();
            let steps = mix.steps().unwrap();
            assert_eq!(steps.len(), mix.count, "{name}");
            assert!(steps.iter().any(|step| step.new_key), "{name}");
        }
    }

    #[test]
    fn shares_and_new_keys_are_as_said() {
        let part = |algorithm: &str, more: &str| {
            format!("[[part]]\nalgorithm = \"{algorithm}\"\ndirection = \"encrypt\"\nbytes = [16, 32]\n{more}\n")
        };
        let text = format!(
            "title = \"x\"\ncount = 100\n{}{}",
            part("AES-128-CTR", "share = 3"),
            part("AES-128-GCM", "share = 1\nnew_key_every = 5")
        );
        let steps = mix(&text).unwrap().steps().unwrap();
        let of = |session| steps.iter().filter(move |step| step.session == session);
        assert_eq!((of(0).count(), of(1).count()), (75, 25));
        assert_eq!((of(0).filter(|step| step.new_key).count(), of(1).filter(|step| step.new_key).count()), (0, 5));
        let sizes: Vec<usize> = of(1).take(4).map(|step| step.operation.input.len()).collect();
        assert_eq!(sizes, [16, 32, 16, 32]);
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let one = |algorithm: &str, direction: &str| {
            mix(&format!(
                "title = \"x\"\ncount = 1\n[[part]]\nalgorithm = \"{algorithm}\"\ndirection = \"{direction}\"\nbytes = [16]\nshare = 1\n"
            ))
        };
        assert!(one("AES-128-CTR", "encrypt").is_ok());
        assert!(one("AES-129-CTR", "encrypt").unwrap_err().contains("AES-129-CTR"));
        assert!(one("X25519", "compute").unwrap_err().contains("X25519"));
        assert!(one("SHA-256", "encrypt").unwrap_err().contains("SHA-256"));
        assert!(mix("title = \"x\"\ncount = 1\npart = []\n").unwrap_err().contains("at least one part"));
        assert!("web".parse::<Mix>().unwrap_err().contains("tls, files, dds"));
        assert!("/nowhere.toml".parse::<Mix>().unwrap_err().contains("/nowhere.toml"));
    }
}
