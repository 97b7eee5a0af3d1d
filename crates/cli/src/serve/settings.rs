//! The broker's settings: a TOML file, and the command line above it.

use crate::failure::Failure;
use crate::texts;
use bywash_manager::{EngineName, PolicyKind, ReloadName, Tenant};
use bywash_policy::mediator::Prefer;
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a configuration file may say. Everything has a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where clients connect.
    pub(crate) socket: Option<PathBuf>,
    /// The socket's permissions, in octal as `chmod` takes them.
    pub(crate) socket_mode: Option<Mode>,
    /// The users that may connect besides root and the broker's own; the socket's permissions let nobody else in.
    pub(crate) allow_uids: Option<Vec<u32>>,
    /// The groups whose members may connect.
    pub(crate) allow_gids: Option<Vec<u32>>,
    /// Who decides.
    pub(crate) policy: Option<Policy>,
    /// What computes.
    pub(crate) engines: Option<Vec<Engine>>,
    /// Who decides what a reconfigurable engine holds.
    pub(crate) reload: Option<Reload>,
    /// Whether a part of a processor is reserved for the thread of a single module.
    pub(crate) module_first: Option<bool>,
    /// Where Prometheus metrics are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// How a drain is bounded, in seconds.
    pub(crate) drain_seconds: Option<u64>,
    /// The folder of the vault.
    pub(crate) keys: Option<PathBuf>,
    /// A file with the passphrase under which keys are encrypted there.
    pub(crate) keys_passphrase: Option<PathBuf>,
    /// Where uses of keys are logged.
    pub(crate) audit: Option<PathBuf>,
    /// Who is promised what.
    #[serde(default)]
    pub(crate) tenant: Vec<TenantSettings>,
    /// What one client may use.
    #[serde(default)]
    pub(crate) quotas: Quotas,
}

/// What the clients of a user, of a group or of a program are promised.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantSettings {
    /// Which: `uid:NUMBER`, `gid:NUMBER` or `program:NAME`.
    #[serde(rename = "match")]
    matches: ClientMatch,
    /// The share of each of their processes beside others that have work.
    #[serde(default = "one")]
    weight: NonZeroU32,
    /// Within what time a request should be done.
    goal: Option<Goal>,
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Whom a tenant's rule means.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct ClientMatch(bywash_broker::Match);

impl TryFrom<String> for ClientMatch {
    type Error = bywash_core::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// A time with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Goal(Duration);

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let goal = humantime::parse_duration(&text).ok().filter(|goal| !goal.is_zero());
        goal.map(Self).ok_or_else(|| format!("'{text}' is no time that can be kept; write a number and its unit, such as 500us, 1ms or 2s"))
    }
}

impl TenantSettings {
    /// As a broker takes it.
    pub(super) fn rule(&self) -> bywash_broker::TenantRule {
        let goal_ns = self.goal.map(|Goal(goal)| u64::try_from(goal.as_nanos()).unwrap_or(u64::MAX));
        bywash_broker::TenantRule { matches: self.matches.0.clone(), tenant: Tenant { weight: self.weight.get(), goal_ns } }
    }
}

/// A policy that a broker can be told to follow, by its name and parameters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Policy(String);

impl core::str::FromStr for Policy {
    type Err = bywash_core::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        name.parse::<PolicyKind>().map(|kind| Self(kind.to_string()))
    }
}

impl TryFrom<String> for Policy {
    type Error = bywash_core::Error;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl Policy {
    /// The mediator, with what it is to prefer.
    pub(crate) fn mediator(prefer: &Prefer) -> Self {
        Self(format!("{}:prefer={prefer}", bywash_policy::mediator::NAME))
    }

    /// As a manager takes it.
    ///
    /// # Errors
    /// None: it was parsed before.
    pub(crate) fn kind(&self) -> Result<PolicyKind, bywash_core::Error> {
        self.0.parse()
    }
}

/// An engine by its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Engine(pub(crate) EngineName);

impl TryFrom<String> for Engine {
    type Error = bywash_core::Error;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

/// A policy for a reconfigurable engine by its name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Reload(pub(crate) ReloadName);

impl TryFrom<String> for Reload {
    type Error = bywash_core::Error;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

/// Limits for clients, so that none starves the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quotas {
    /// Connections of one user [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) clients_per_uid_max: Option<NonZeroU32>,
    /// Open sessions of one client [default: 4096]
    #[arg(long, value_name = "N")]
    pub(crate) sessions_per_client_max: Option<NonZeroU32>,
    /// Open sessions of all clients of one user [default: 65536]
    #[arg(long, value_name = "N")]
    pub(crate) sessions_per_uid_max: Option<NonZeroU32>,
    /// Requests of one client in flight [default: 256]
    #[arg(long, value_name = "N")]
    pub(crate) in_flight_max: Option<NonZeroU32>,
    /// Control messages of one client a second [default: 20000]
    #[arg(long, value_name = "N")]
    pub(crate) control_rate_max: Option<NonZeroU32>,
    /// Connections of one user a second [default: 200]
    #[arg(long, value_name = "N")]
    pub(crate) connect_rate_max: Option<NonZeroU32>,
    /// Mebibytes of all arenas of one user [default: 4096]
    #[arg(long, value_name = "MIB")]
    pub(crate) arena_mib_per_uid_max: Option<NonZeroU32>,
}

impl Quotas {
    /// Sets what is named, leaves the rest.
    pub(super) fn apply(&self, to: &mut bywash_broker::Quotas) {
        let set = |to: &mut u32, value: Option<NonZeroU32>| *to = value.map_or(*to, NonZeroU32::get);
        set(&mut to.clients_per_uid_max, self.clients_per_uid_max);
        set(&mut to.sessions_per_client_max, self.sessions_per_client_max);
        set(&mut to.sessions_per_uid_max, self.sessions_per_uid_max);
        set(&mut to.in_flight_max, self.in_flight_max);
        set(&mut to.control_rate_max, self.control_rate_max);
        set(&mut to.connect_rate_max, self.connect_rate_max);
        set(&mut to.arena_mib_per_uid_max, self.arena_mib_per_uid_max);
    }
}

/// File permissions, written as a string of octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Mode(pub(crate) u32);

impl core::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0o").unwrap_or(text);
        let mode = u32::from_str_radix(digits, 8).ok().filter(|&mode| mode <= 0o777);
        mode.map(Self).ok_or_else(|| format!("'{text}' is no file mode; write octal digits such as 0660"))
    }
}

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Settings {
    /// Reads a file; errors name file, line and key.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        Self::parse(&texts::whole(path)?, path)
    }

    /// These settings where `above` says nothing.
    pub(super) fn under(self, above: Self) -> Self {
        Self {
            socket: above.socket.or(self.socket),
            socket_mode: above.socket_mode.or(self.socket_mode),
            allow_uids: above.allow_uids.or(self.allow_uids),
            allow_gids: above.allow_gids.or(self.allow_gids),
            policy: above.policy.or(self.policy),
            engines: above.engines.or(self.engines),
            reload: above.reload.or(self.reload),
            module_first: above.module_first.or(self.module_first),
            metrics: above.metrics.or(self.metrics),
            drain_seconds: above.drain_seconds.or(self.drain_seconds),
            keys: above.keys.or(self.keys),
            keys_passphrase: above.keys_passphrase.or(self.keys_passphrase),
            audit: above.audit.or(self.audit),
            tenant: if above.tenant.is_empty() { self.tenant } else { above.tenant },
            quotas: Quotas {
                clients_per_uid_max: above.quotas.clients_per_uid_max.or(self.quotas.clients_per_uid_max),
                sessions_per_client_max: above.quotas.sessions_per_client_max.or(self.quotas.sessions_per_client_max),
                sessions_per_uid_max: above.quotas.sessions_per_uid_max.or(self.quotas.sessions_per_uid_max),
                in_flight_max: above.quotas.in_flight_max.or(self.quotas.in_flight_max),
                control_rate_max: above.quotas.control_rate_max.or(self.quotas.control_rate_max),
                connect_rate_max: above.quotas.connect_rate_max.or(self.quotas.connect_rate_max),
                arena_mib_per_uid_max: above.quotas.arena_mib_per_uid_max.or(self.quotas.arena_mib_per_uid_max),
            },
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
            let key = text
                .lines()
                .nth(line - 1)
                .and_then(|line| line.split_once('='))
                .map_or(String::new(), |(key, _)| format!(", key {}", key.trim()));
            let message = error.message();
            Failure::config(format!("{}, line {line}{key}: {message}\n`bywash serve --help` lists the settings", path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(text, Path::new("broker.toml")).map_err(|failure| failure.to_string())
    }

    #[test]
    fn everything_has_a_default_and_can_be_set() {
        assert_eq!(parse("").unwrap(), Settings::default());
        let text = "socket = \"/run/x\"\nsocket_mode = \"0666\"\nallow_uids = [0, 33]\nallow_gids = [48]\npolicy = \"fifo\"\nengines = [\"cpu\"]\nmetrics = \"127.0.0.1:9464\"\n\
                    drain_seconds = 3\n[quotas]\nsessions_per_client_max = 10\n";
        let settings = parse(text).unwrap();
        assert_eq!((settings.socket_mode, settings.quotas.sessions_per_client_max), (Some(Mode(0o666)), NonZeroU32::new(10)));
    }

    #[test]
    fn tenants_are_promised_a_weight_and_a_goal() {
        let text = "[[tenant]]\nmatch = \"uid:1000\"\nweight = 3\ngoal = \"1ms\"\n[[tenant]]\nmatch = \"program:backup\"\n";
        let rules: Vec<_> = parse(text).unwrap().tenant.iter().map(TenantSettings::rule).collect();
        assert_eq!(rules[0].tenant, Tenant { weight: 3, goal_ns: Some(1_000_000) });
        assert_eq!((rules[1].matches.to_string(), rules[1].tenant), ("program:backup".into(), Tenant::default()));
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let unknown = parse("policy = \"fifo\"\nsokket = \"/run/x\"\n").unwrap_err();
        assert!(unknown.contains("broker.toml, line 2, key sokket") && unknown.contains("expected one of"), "{unknown}");
        let mode = parse("socket_mode = \"rwx\"").unwrap_err();
        assert!(mode.contains("line 1, key socket_mode") && mode.contains("octal"), "{mode}");
        let policy = parse("policy = \"roulette\"").unwrap_err();
        assert!(policy.contains("line 1, key policy") && policy.contains("fifo: oldest first") && policy.contains("exclusive"), "{policy}");
        let engine = parse("engines = [\"cpu\", \"abacus\"]").unwrap_err();
        assert!(engine.contains("line 1, key engines") && engine.contains("no engine 'abacus'"), "{engine}");
        let reload = parse("reload = \"best\"").unwrap_err();
        assert!(reload.contains("line 1, key reload") && reload.contains("tuned"), "{reload}");
        let nobody = parse("[[tenant]]\nmatch = \"www-data\"\n").unwrap_err();
        assert!(nobody.contains("line 2, key match") && nobody.contains("uid:NUMBER"), "{nobody}");
        let goal = parse("[[tenant]]\nmatch = \"uid:33\"\ngoal = \"soon\"\n").unwrap_err();
        assert!(goal.contains("line 3, key goal") && goal.contains("1ms"), "{goal}");
        assert!(parse("[[tenant]]\nmatch = \"uid:33\"\nweight = 0\n").unwrap_err().contains("key weight"));
        let quota = parse("[quotas]\nin_flight_max = -1\n").unwrap_err();
        assert!(quota.contains("line 2, key in_flight_max"), "{quota}");
        let none = parse("[quotas]\nclients_per_uid_max = 0\n").unwrap_err();
        assert!(none.contains("line 2, key clients_per_uid_max") && none.contains("nonzero"), "{none}");
    }

    #[test]
    fn the_packaged_file_shows_every_setting_with_its_default() {
        let packaged = include_str!("../../../../packaging/broker.toml");
        assert_eq!(parse(packaged).unwrap(), Settings::default());
        // A setting is a commented line without spaces before its `=` but one.
        let is_setting = |line: &&str| line.split(" = ").next().is_some_and(|name| !name.trim_start_matches("# ").contains(' '));
        let uncommented: Vec<_> =
            packaged.lines().map(|line| if is_setting(&line) { line.trim_start_matches("# ") } else { line }).collect();
        let all = parse(&uncommented.join("\n")).unwrap();
        assert_eq!(all.quotas.in_flight_max, NonZeroU32::new(bywash_broker::Quotas::default().in_flight_max));
        assert_eq!(
            (all.policy, all.drain_seconds, all.engines),
            (Some(Policy("placement".into())), Some(5), Some(vec![Engine(EngineName::Cpu)]))
        );
        assert_eq!(all.reload, Some(Reload(ReloadName::default())));
        assert_eq!(all.module_first, Some(true));
        let mut quotas = bywash_broker::Quotas {
            clients_per_uid_max: 0,
            sessions_per_client_max: 0,
            sessions_per_uid_max: 0,
            in_flight_max: 0,
            control_rate_max: 0,
            connect_rate_max: 0,
            arena_mib_per_uid_max: 0,
            ..bywash_broker::Quotas::default()
        };
        all.quotas.apply(&mut quotas);
        assert_eq!(quotas, bywash_broker::Quotas::default());
    }

    #[test]
    fn the_command_line_goes_above_the_file() {
        let file = parse("policy = \"fifo\"\nallow_uids = [1]\n[quotas]\nin_flight_max = 3\n").unwrap();
        let line = parse("policy = \"placement\"\n[quotas]\ncontrol_rate_max = 5\n").unwrap();
        let both = file.under(line);
        assert_eq!((both.policy, both.allow_uids), (Some(Policy("placement".into())), Some(vec![1])));
        let mut quotas = bywash_broker::Quotas::default();
        both.quotas.apply(&mut quotas);
        assert_eq!((quotas.in_flight_max, quotas.control_rate_max), (3, 5));
        assert_eq!(quotas.clients_per_uid_max, bywash_broker::Quotas::default().clients_per_uid_max);
    }

    #[test]
    fn a_missing_file_is_a_matter_of_configuration() {
        assert_eq!(Settings::load(Path::new("/nowhere/broker.toml")).unwrap_err().exit, Exit::Config);
    }

    #[test]
    fn no_file_makes_it_panic() {
        use bywash_fuzz_targets::runner;
        let seeds = [
            include_str!("../../../../packaging/broker.toml"),
            "socket = \"/run/x\"\nsocket_mode = \"0666\"\nallow_uids = [0, 33]\npolicy = \"fifo\"\n[quotas]\nin_flight_max = 3\n",
        ];
        let target = |bytes: &[u8]| match parse(&String::from_utf8_lossy(bytes)) {
            Ok(_) => {}
            Err(error) => assert!(error.contains("broker.toml, line"), "{error}"),
        };
        let seed = runner::seed_from_env();
        println!("broker.toml: BYWASH_SEED={seed}");
        let crash = runner::run(target, &seeds.map(|text| text.as_bytes().to_vec()), 5_000, seed).err();
        assert!(crash.is_none(), "BYWASH_SEED={seed}: {crash:?}");
    }
}
