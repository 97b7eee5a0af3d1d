//! What a client is told when it is made, by its caller or by the environment.

use crate::behalf::Behalf;
use crate::kept::KEPT_MAX;
use bywash_core::{Error, Result};
use bywash_protocol::environment::variable;
use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;
use std::sync::Arc;

/// What a client is told when it is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// The broker's socket; `None` works without a broker.
    pub socket: Option<PathBuf>,
    /// Overrides the routing table.
    pub route: Route,
    /// Names the run that this process belongs to, for the broker's accounts.
    pub run: Option<String>,
    /// How many keyed ciphers an interface may [keep](crate::Kept) in each thread between one message and the next; at most [`KEPT_MAX`]. With 0 no key outlives its last context.
    pub keep: usize,
    /// Another process than this one, for which is computed: the broker's accounts and rules are its.
    pub behalf: Option<Arc<Behalf>>,
}

/// How many keyed ciphers a thread may keep, unless something else is said: some 200 KiB.
const KEEP: usize = 64;

impl Default for Config {
    fn default() -> Self {
        Self { socket: None, route: Route::Auto, run: None, keep: KEEP, behalf: None }
    }
}

/// The number of a setting of keyed ciphers.
///
/// # Errors
/// [`Error::Config`] for what is no number, or over [`KEPT_MAX`].
pub fn parse_keep(value: &str) -> Result<usize> {
    value.parse().ok().filter(|&keep| keep <= KEPT_MAX).ok_or_else(|| Error::Config {
        place: "keep (BYWASH_KEEP)".into(),
        reason: format!("'{value}' is no number of keyed ciphers from 0, for none, to {KEPT_MAX}"),
    })
}

impl Config {
    /// What the environment says: `BYWASH_SOCKET` (a path; `none` for no broker; unset for the default place,
    /// [`socket_path`](bywash_protocol::socket_path)), `BYWASH_ROUTE` (`auto`, `here`, `queue`), `BYWASH_RUN`, and `BYWASH_KEEP` (a number).
    /// A program with borrowed rights asks none of them (see [`environment`](bywash_protocol::environment)).
    ///
    /// # Errors
    /// [`Error::Config`], naming the variable.
    pub fn from_env() -> Result<Self> {
        let mut wrong = None;
        let config = Self::from_env_telling(|error| wrong = wrong.take().or(Some(error)));
        wrong.map_or(Ok(config), Err)
    }

    /// The same for who cannot stop at a mistake: a variable that cannot be read is told of, and that one alone is taken as unset.
    pub fn from_env_telling(mut tell: impl FnMut(Error)) -> Self {
        let text = |name| variable(name).map(|value| value.to_string_lossy().into_owned());
        let socket = Some(bywash_protocol::socket_path()).filter(|path| path.as_os_str() != "none");
        let mut config = Self { socket, run: text("BYWASH_RUN"), ..Self::default() };
        match text("BYWASH_ROUTE").map(|value| value.parse()).transpose() {
            Ok(route) => config.route = route.unwrap_or_default(),
            Err(error) => tell(error),
        }
        match text("BYWASH_KEEP").map(|value| parse_keep(&value)).transpose() {
            Ok(keep) => config.keep = keep.unwrap_or(KEEP),
            Err(error) => tell(error),
        }
        config
    }
}

/// Whether the routing table is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// The routing table decides.
    #[default]
    Auto,
    /// Everything in the caller's place.
    Here,
    /// Everything through the manager's queue (the broker's, if there is one).
    Queue,
}

impl Route {
    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Route::Auto => "auto",
            Route::Here => "here",
            Route::Queue => "queue",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Route {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Route::Auto, Route::Here, Route::Queue]
            .into_iter()
            .find(|route| route.name() == name)
            .ok_or_else(|| Error::Config { place: "route (BYWASH_ROUTE)".into(), reason: format!("'{name}' is none of auto, here, queue") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_round_trip_and_refuse_others() {
        for route in [Route::Auto, Route::Here, Route::Queue] {
            assert_eq!(route.to_string().parse::<Route>().unwrap(), route);
        }
        let error = "fast".parse::<Route>().unwrap_err().to_string();
        assert!(error.contains("BYWASH_ROUTE") && error.contains("'fast'"), "{error}");
    }

    #[test]
    fn a_number_to_keep_has_a_bound() {
        assert_eq!((parse_keep("0").unwrap(), parse_keep("256").unwrap(), Config::default().keep), (0, KEPT_MAX, KEEP));
        for bad in ["257", "-1", "many", ""] {
            let error = parse_keep(bad).unwrap_err().to_string();
            assert!(error.contains("BYWASH_KEEP") && error.contains(&format!("'{bad}'")), "{error}");
        }
    }
}
