//! `bywash bench`: what operations cost, size by size, in every place where they could run, beside OpenSSL and beside an earlier run.

mod baseline;
mod choose;
mod export;
mod job;
mod measure;
mod mix;
mod openssl;
mod pace;
mod progress;
mod report;
mod sites;
mod sizes;
mod table;
mod verdict;

use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::shell::print;
use crate::svg_file::svg_file;
use crate::terminal::{Style, say};
use baseline::{Baseline, Compared, Subject};
use bywash_core::{Algorithm, Direction};
use bywash_manager::EngineName;
use bywash_measure::noise::{Noise, Watch};
use bywash_measure::turns::{Clock, clock_ns};
use job::{Job, directions};
use measure::{INTERRUPTED, Setting};
use mix::Mix;
use pace::Plan;
use progress::Progress;
use report::{Cell, Column, Report, Row, Whole, direction_name};
use sites::{PlaceName, Site, Sites, Wanted};
use sizes::Sizes;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use table::Headline;
use verdict::{AGAIN, APART};

/// `bywash bench`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash bench aes-256-gcm --against openssl
  bywash bench ciphers aeads --size 16..64K --svg curves.svg
  bywash bench aes-256-gcm chacha20-poly1305 --size 64,1K,16K --threads 2 --latency
  bywash bench rsa-2048-private x25519 --json
  bywash bench --mix tls --against openssl
  bywash bench gcm --cpu --save-baseline before.json
  bywash bench gcm --cpu --baseline before.json --fail-under 0.95

Algorithms: a name; a family that `bywash engines` shows (ciphers, AEADs, digests, MACs, RSA, ...);
or a part of names, such as gcm, aes-256 or sign. Legacy ciphers are meant by words that mean
nothing else, such as camellia, 3des or legacy. Modes of whole blocks take the next size that
they can have.

Places: `here` is the calling thread; `lanes` the same with a full batch of public-key operations
side by side; `library` AWS-LC without Bywash's kernels; `queue` a manager in this process; `broker`
the running broker, if one answers. OpenSSL's ciphers, AEADs, digests and MACs are called in this
process, their bytes compared with ours first; its public keys cost a second of `openssl speed` in
every round, one of it for each thread.

Rounds are interleaved and figures are medians. The time of one operation is as one thread sees it,
rates are of all threads together. Ratios are medians of each round's ratio, with the interval that
holds it with 95 % confidence (the range, below six rounds). Cycles are the core's own, from a loop
of known length run between measurements, not ticks of the time stamp counter. `limit` is the share
of what the AES unit does if nothing else is done, for AES modes whose blocks do not wait for each
other. These, and ratios, are the first place's. Latencies are of calls, which do several operations
in lanes and with --batch, and include one reading of the clock.

Mixes: `tls`, `files` and `dds` say in their files where sizes and shares come from; your own is a
file of the same form. Ctrl-C prints what was measured so far.

A baseline is what --json prints; --save-baseline spreads its rounds over most of a second at each
size. Both it and --baseline divide rounds: five times as many of a fifth of --slice, in the same
time, are less at the scheduler's mercy. What is compared is the ratio to openssl in the same
rounds, where both runs have it (--against openssl or --cpu), else the time. What seems slower is
measured again in up to three later moments; it is called slower where most of them say so with
confidence, and unclear where they contradict each other, or where a busy machine explains a time
that was compared without a rival.")]
pub(crate) struct Args {
    /// Algorithms, families or parts of names; case, spaces and dashes do not matter
    #[arg(required_unless_present_any = ["all", "mix"], value_name = "ALG")]
    algorithms: Vec<String>,
    /// All algorithms but legacy ones
    #[arg(long, conflicts_with = "algorithms")]
    all: bool,
    /// Traffic as somebody has it: tls, files, dds, or the file of your own; again for more
    #[arg(long, value_name = "MIX")]
    mix: Vec<Mix>,
    /// Sizes with commas between: one, FROM..TO (by factors of 4) or FROM..TO*FACTOR; K, M, G are
    /// powers of 1024
    #[arg(long, value_name = "SIZES", default_value = "64..1M")]
    size: Sizes,
    /// Which way ciphers and AEADs run
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Ways::Encrypt)]
    direction: Ways,
    /// Threads that work at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Operations that each thread hands over together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    batch: u16,
    /// Rounds over all places
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Seconds of one place at one size, in rounds of --slice each; three rounds at least
    #[arg(long, value_name = "SECONDS", conflicts_with = "rounds", allow_negative_numbers = true, value_parser = seconds)]
    time: Option<Duration>,
    /// Milliseconds of one place in one round
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    slice: u64,
    /// Time calls one by one as well: p50, p90, p99, p99.9
    #[arg(long)]
    latency: bool,
    /// Count the thread's processor time: the calling thread alone, beside the system's OpenSSL
    #[arg(long, conflicts_with_all = ["threads", "socket", "engine", "place"])]
    cpu: bool,
    /// Measure a rival in the same rounds
    #[arg(long, value_enum, value_name = "RIVAL")]
    against: Option<Rival>,
    /// Measure these places alone [default: here, lanes, queue, and broker if one answers]
    #[arg(long, value_enum, value_name = "PLACE", value_delimiter = ',')]
    place: Vec<PlaceName>,
    /// What the place `queue` computes with: cpu, gpu (or gpu:cuda, gpu:vulkan), or board:CARD for a modelled card
    /// (one that comes along or the file of its cost sheet); again for more [default: cpu]
    #[arg(long, value_name = "ENGINE")]
    engine: Vec<EngineName>,
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Keep this run, to compare later ones with
    #[arg(long, value_name = "FILE")]
    save_baseline: Option<PathBuf>,
    /// Compare with a run that was kept
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Exit with 6 if anything is, with confidence and in most moments, less than so many times as
    /// fast as the baseline; above 1 it has to be faster
    #[arg(long, value_name = "RATIO", requires = "baseline", value_parser = at_most_ten)]
    fail_under: Option<f64>,
    /// Draw throughput against size
    #[arg(long, value_name = "FILE", value_parser = svg_file())]
    svg: Option<PathBuf>,
    /// Print as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print as CSV
    #[arg(long)]
    csv: bool,
}

/// Which way ciphers and AEADs run; all else has one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Ways {
    Encrypt,
    Decrypt,
    Both,
}

/// Whom to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rival {
    /// The system's OpenSSL 3
    Openssl,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.001..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds, 0.001 to 3600".into())
}

fn at_most_ten(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio: &f64| *ratio > 0.0 && *ratio <= 10.0);
    ratio.ok_or_else(|| "expected a ratio above 0 and of at most 10, such as 0.95".into())
}

/// Measures and prints: table by table for people, the whole at the end for programs.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let algorithms = if args.all { Algorithm::CURRENT.to_vec() } else { choose::all_of(&args.algorithms)? };
    let clock = if args.cpu { "cpu" } else { "wall" };
    let openssl = args.against.is_some() || args.cpu;
    let mut whole = Whole {
        version: env!("CARGO_PKG_VERSION").into(),
        processor: bywash_manager::calibrate::processor(),
        openssl: openssl.then(|| bywash_libcrypto::version().ok()).flatten(),
        threads: args.threads.into(),
        batch: args.batch.into(),
        clock: clock.into(),
        stopped: false,
        noise: Noise::default(),
        warnings: Vec::new(),
        reports: Vec::new(),
    };
    let least = args.fail_under.unwrap_or(baseline::SLOWER);
    let before = args.baseline.as_deref().map(|path| Baseline::load(path, &whole, least)).transpose()?;
    let wanted = Wanted { cpu: args.cpu, places: &args.place, engines: &args.engine, socket: args.socket.as_deref(), openssl };
    let sites = Sites::find(&wanted)?;
    let algorithms = having_places(&sites, algorithms, args)?;
    if args.svg.is_some() && algorithms.iter().all(|algorithm| algorithm.is_public_key()) {
        return Err(export::nothing_to_draw());
    }
    [&args.svg, &args.save_baseline].into_iter().flatten().try_for_each(|path| check_folder(path))?;
    let interrupt = Interrupt::catch()?;
    let progress = progress(&algorithms, args);
    let mut bench = Bench {
        args,
        sites: &sites,
        setting: setting(args, &interrupt, &progress),
        watch: Watch::beside(sites.workers.clone()),
        baseline: before.as_ref(),
    };
    for task in bench.tasks(&algorithms) {
        let report = task(&mut bench)?;
        if report.rows.is_empty() {
            break;
        }
        if !(args.json || args.csv) {
            progress.suspend(|| print((table::as_text(&report, &bench.headline()) + "\n").as_bytes()))?;
        }
        whole.reports.push(report);
    }
    whole.stopped = interrupt.came();
    whole.noise = bench.watch.end();
    whole.warnings = whole.noise.warnings();
    progress.end();
    hand_over(args, &whole)?;
    Ok(verdict(args, &whole, before.as_ref()))
}

/// The algorithms that run in one of the places at least; the others are named.
fn having_places(sites: &Sites, algorithms: Vec<Algorithm>, args: &Args) -> Result<Vec<Algorithm>, Failure> {
    let has_one = |algorithm: &Algorithm| sites.offering(*algorithm).iter().any(|site| site.name() != sites::OPENSSL);
    let (having, without): (Vec<_>, Vec<_>) = algorithms.into_iter().partition(has_one);
    if without.is_empty() {
        return Ok(having);
    }
    let names: Vec<_> = without.iter().map(|algorithm| algorithm.name()).collect();
    let why = format!(
        "{}: not in any of the places to be measured; `--place here` measures the calling thread, `lanes` is for public keys",
        names.join(", ")
    );
    if having.is_empty() && args.mix.is_empty() {
        return Err(Failure::new(Exit::Usage, why));
    }
    say!("bywash: {why}");
    Ok(having)
}

/// Said before minutes are spent on what could not be written then.
fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Failure::file("write", path, &ErrorKind::NotADirectory.into())),
        Err(error) => Err(Failure::file("write", path, &error)),
    }
}

fn setting<'a>(args: &Args, interrupt: &'a Interrupt, progress: &'a Progress) -> Setting<'a> {
    let clock = if args.cpu { Clock::Cpu } else { Clock::Wall };
    let plan = Plan::new(args.rounds.into(), Duration::from_millis(args.slice), args.time, clock);
    let is_compared = args.baseline.is_some() || args.save_baseline.is_some();
    Setting {
        threads: args.threads.into(),
        batch: args.batch.into(),
        plan: Plan { spread: args.save_baseline.is_some(), ..if is_compared { plan.finer() } else { plan } },
        latency: args.latency,
        interrupt,
        progress,
    }
}

/// Everything but the tables, which have been printed.
fn hand_over(args: &Args, whole: &Whole) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(whole).map_err(|error| Failure::failed(error.to_string()))?;
        print((text + "\n").as_bytes())?;
    }
    if args.csv {
        print(export::as_csv(whole).as_bytes())?;
    }
    if let Some(path) = &args.svg {
        export::as_svg(path, &whole.reports)?;
    }
    match &args.save_baseline {
        Some(path) if whole.stopped => say!("bywash: {}: not written, since the run was interrupted", path.display()),
        Some(path) => baseline::save(path, whole)?,
        None => {}
    }
    Ok(())
}

/// What is to be said beside the figures, and the exit code.
fn verdict(args: &Args, whole: &Whole, before: Option<&Baseline>) -> ExitCode {
    let say = |text: &str| say!("bywash: {text}");
    if args.latency {
        say(&format!("reading the clock is in each latency; it takes {:.0} ns", clock_ns()));
    }
    if !whole.warnings.is_empty() {
        say("this machine is noisy; trust ratios of one run, not absolutes:");
        whole.warnings.iter().for_each(|warning| say!("  {warning}"));
    }
    let compared = before.map(|before| before.summary(whole)).unwrap_or_default();
    if before.is_some() {
        tell(&compared, args.fail_under.unwrap_or(baseline::SLOWER));
    }
    if whole.stopped {
        say("interrupted; what was measured until then is above");
        return Interrupt::exit_code();
    }
    let bare: usize = whole.reports.iter().map(Report::rows_without_a_figure).sum();
    if bare > 0 {
        say(&format!("{bare} row{} without a figure, for the reason below the table", if bare == 1 { "" } else { "s" }));
        return ExitCode::from(Exit::Failed as u8);
    }
    if args.fail_under.is_some() && compared.by_rival + compared.by_time == 0 {
        say("nothing of this run is in the baseline; compare the same algorithms, sizes and places");
        return ExitCode::from(Exit::Failed as u8);
    }
    let failed = args.fail_under.is_some() && !compared.slower.is_empty();
    if failed { ExitCode::from(Exit::Slower as u8) } else { ExitCode::SUCCESS }
}

/// How the run compares with the baseline, than which it is to be so many times as fast at least.
fn tell(compared: &Compared, least: f64) {
    let Compared { by_rival, by_time, missing, slower, unclear, doubts } = compared;
    doubts.iter().for_each(|doubt| say!("bywash: {doubt}"));
    let how = match (by_rival, by_time) {
        (0, 0) => String::new(),
        (0, _) => " by time alone".into(),
        (_, 0) => " by the ratio to openssl in the same rounds".into(),
        _ => format!(", {by_rival} by the ratio to openssl in the same rounds, {by_time} by time alone"),
    };
    let plural = if by_rival + by_time == 1 { "" } else { "s" };
    let missing = if *missing > 0 { format!("; {missing} not in it") } else { String::new() };
    let than = if least > 1.0 { format!("less than {least} times as fast") } else { "slower".into() };
    say!("bywash: {} figure{plural} compared with the baseline{how}: {} {than}{missing}", by_rival + by_time, slower.len());
    slower.iter().for_each(|line| say!("  {line}"));
    if !unclear.is_empty() {
        say!(
            "bywash: this machine is too noisy to tell of {}; measure beside a rival (--against openssl, --cpu), longer, or with less beside it:",
            unclear.len()
        );
        unclear.iter().for_each(|line| say!("  {line}"));
    }
}

/// One run.
struct Bench<'a> {
    args: &'a Args,
    sites: &'a Sites,
    setting: Setting<'a>,
    watch: Watch,
    baseline: Option<&'a Baseline>,
}

/// Measures a row in another moment.
type Again<'a> = &'a dyn Fn(&Setting<'_>, &mut Watch) -> Result<Vec<Cell>, Failure>;

/// Measures one report.
type Task<'s> = Box<dyn FnOnce(&mut Bench<'_>) -> Result<Report, Failure> + 's>;

impl Bench<'_> {
    fn tasks<'s>(&self, algorithms: &[Algorithm]) -> Vec<Task<'s>> {
        let ways = self.args.direction;
        let mut all: Vec<Task<'s>> = Vec::new();
        for &algorithm in algorithms {
            for direction in ways.of(algorithm) {
                all.push(Box::new(move |bench| bench.algorithm(algorithm, direction)));
            }
        }
        for mix in self.args.mix.clone() {
            all.push(Box::new(move |bench| bench.mix(&mix)));
        }
        all
    }

    fn headline(&self) -> Headline {
        let Setting { threads, batch, .. } = self.setting;
        Headline { threads, batch, cpu: self.args.cpu, style: Style::of_stdout() }
    }

    fn algorithm(&mut self, algorithm: Algorithm, direction: Direction) -> Result<Report, Failure> {
        let sites = self.sites.offering(algorithm);
        let mut rows = Vec::new();
        for &bytes in sizes_of(algorithm, self.args) {
            let row = self.row(&sites, algorithm, direction, bytes)?;
            self.setting.progress.step();
            let is_there = rows.iter().any(|there: &Row| there.bytes == row.bytes);
            if !is_there && !row.cells.iter().all(is_interrupted) {
                rows.push(row);
            }
        }
        Ok(Report {
            name: algorithm.name().into(),
            title: None,
            direction: direction_name(direction).into(),
            public_key: algorithm.is_public_key(),
            places: columns(&sites),
            rows,
        })
    }

    fn row(&mut self, sites: &[&dyn Site], algorithm: Algorithm, direction: Direction, bytes: usize) -> Result<Row, Failure> {
        self.setting.progress.row(format!("{algorithm} {}", sizes::show(bytes)));
        let job = Job::new(algorithm, direction, bytes);
        // Modes of whole blocks take a size that they can have.
        let asked = bytes;
        let bytes = job.as_ref().ok().filter(|_| !algorithm.is_public_key()).map_or(asked, |job| job.operation.input.len());
        if bytes != asked {
            let note =
                || say!("bywash: {algorithm} of {} bytes instead of {}: its blocks are whole", sizes::show(bytes), sizes::show(asked));
            self.setting.progress.suspend(note);
        }
        let cells = match job {
            Ok(job) => {
                let first = measure::of_job(sites, &job, &self.setting, &mut self.watch);
                let subject = Subject { name: algorithm.name(), direction: direction_name(direction), bytes };
                self.compared(subject, sites, first, &|setting, watch| Ok(measure::of_job(sites, &job, setting, watch)))?
            }
            Err(error) => sites.iter().map(|_| Cell::Failed { error: error.to_string() }).collect(),
        };
        Ok(Row { bytes, routed: Some(self.sites.routed(algorithm, bytes).to_owned()), cells })
    }

    /// The cells of a row with how they compare with the baseline, for which what seems slower is measured again.
    fn compared(&mut self, subject: Subject<'_>, sites: &[&dyn Site], first: Vec<Cell>, again: Again<'_>) -> Result<Vec<Cell>, Failure> {
        let Some(baseline) = self.baseline else { return Ok(first) };
        let (plan, places) = (Plan { spread: false, ..self.setting.plan }, columns(sites));
        let setting = Setting { latency: false, plan, ..self.setting };
        let mut moments = vec![first];
        let comparisons = loop {
            let allowance = verdict::allowance(&self.watch.end(), self.args.cpu);
            let comparisons = baseline.compare(subject, &places, &moments, allowance);
            if !baseline::is_open(&comparisons) || moments.len() > AGAIN || setting.interrupt.came() {
                break comparisons;
            }
            std::thread::sleep(APART);
            moments.push(again(&setting, &mut self.watch)?);
        };
        let mut first = moments.swap_remove(0);
        baseline::note(&mut first, &places, &comparisons);
        Ok(first)
    }

    fn mix(&mut self, mix: &Mix) -> Result<Report, Failure> {
        self.setting.progress.row(format!("mix {}", mix.name));
        let sites = self.sites.one_by_one();
        let (bytes, first) = measure::of_mix(&sites, mix, &self.setting, &mut self.watch)?;
        let subject = Subject { name: &mix.name, direction: "mix", bytes };
        let again = |setting: &Setting<'_>, watch: &mut Watch| Ok(measure::of_mix(&sites, mix, setting, watch)?.1);
        let cells = self.compared(subject, &sites, first, &again)?;
        self.setting.progress.step();
        let rows = if cells.iter().all(is_interrupted) { Vec::new() } else { vec![Row { bytes, routed: None, cells }] };
        let (name, title) = (mix.name.clone(), Some(mix.title.clone()));
        Ok(Report { name, title, direction: "mix".into(), public_key: false, places: columns(&sites), rows })
    }
}

impl Ways {
    /// Those that the algorithm has.
    fn of(self, algorithm: Algorithm) -> impl Iterator<Item = Direction> {
        directions(algorithm).iter().copied().filter(move |direction| match direction {
            Direction::Encrypt => self != Self::Decrypt,
            Direction::Decrypt => self != Self::Encrypt,
            Direction::Compute => true,
        })
    }
}

fn columns(sites: &[&dyn Site]) -> Vec<Column> {
    sites.iter().map(|site| Column { name: site.name().to_owned(), modelled: site.is_modelled(), engine: site.engines() }).collect()
}

fn is_interrupted(cell: &Cell) -> bool {
    matches!(cell, Cell::Failed { error } if error == INTERRUPTED)
}

/// A public-key operation has no size.
fn sizes_of(algorithm: Algorithm, args: &Args) -> &[usize] {
    if algorithm.is_public_key() { &[0] } else { &args.size.0 }
}

fn progress(algorithms: &[Algorithm], args: &Args) -> Progress {
    let rows = |&algorithm: &Algorithm| args.direction.of(algorithm).count() * sizes_of(algorithm, args).len();
    Progress::new(algorithms.iter().map(rows).sum::<usize>() + args.mix.len())
}
