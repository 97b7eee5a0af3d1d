//! `bywash top`: a live screen of a broker.

mod rates;
mod screen;
mod totals;

use crate::broker_link::{Link, socket_path};
use crate::failure::{Exit, Failure};
use crate::shell::print;
use bywash_broker::Stats;
use bywash_protocol::StatsFormat;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use rates::Rates;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
pub(crate) use totals::totals;

/// How wide `--once` draws.
const TEXT_WIDTH: u16 = 100;

/// `bywash top`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bywash top                  live; q quits
  bywash top --once           one screen as text, for scripts and reports
  bywash top --interval 5")]
pub(crate) struct Args {
    /// The broker's socket [default: $BYWASH_SOCKET, else the system's or the session's]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print one screen as text and end
    #[arg(long)]
    once: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// Shows the screen.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let interval = Duration::from_secs(args.interval);
    if args.once {
        let mut watch = Watch::start(args)?;
        std::thread::sleep(interval);
        print(screen::as_text(&watch.look()?, TEXT_WIDTH).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::new(Exit::Usage, "top needs a terminal; use `bywash top --once`, or `bywash stats --json` in scripts"));
    }
    let mut watch = Watch::start(args)?;
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::failed(format!("cannot take over the terminal: {error}; try --once")))?;
    let outcome = live(&mut watch, &mut terminal, interval);
    ratatui::restore();
    outcome.map(|()| ExitCode::SUCCESS)
}

fn live(watch: &mut Watch, terminal: &mut ratatui::DefaultTerminal, interval: Duration) -> Result<(), Failure> {
    let mut rates = watch.look()?;
    loop {
        let drawn = terminal.draw(|frame| screen::draw(&rates, "   q quits", frame.area(), frame.buffer_mut()));
        drawn.map_err(|error| Failure::failed(format!("cannot draw on the terminal: {error}; try --once")))?;
        let next = Instant::now() + interval;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            match pressed(left)? {
                Pressed::Quit => return Ok(()),
                Pressed::Redraw => break,
                Pressed::Nothing => {}
            }
        }
        if Instant::now() >= next {
            rates = watch.look()?;
        }
    }
}

enum Pressed {
    Nothing,
    Redraw,
    Quit,
}

fn pressed(within: Duration) -> Result<Pressed, Failure> {
    let lost = |error: std::io::Error| Failure::failed(format!("cannot read the keyboard: {error}; try --once"));
    if !event::poll(within).map_err(lost)? {
        return Ok(Pressed::Nothing);
    }
    Ok(match event::read().map_err(lost)? {
        Event::Key(KeyEvent { code: KeyCode::Char('q') | KeyCode::Esc, .. }) => Pressed::Quit,
        Event::Key(KeyEvent { code: KeyCode::Char('c'), modifiers, .. }) if modifiers.contains(KeyModifiers::CONTROL) => Pressed::Quit,
        Event::Resize(..) => Pressed::Redraw,
        _ => Pressed::Nothing,
    })
}

/// Two pictures of a broker make rates.
struct Watch {
    link: Link,
    before: (Instant, Stats),
}

impl Watch {
    fn start(args: &Args) -> Result<Self, Failure> {
        let mut link = Link::connect(&socket_path(args.socket.as_deref()))?;
        let first = picture(&mut link)?;
        Ok(Self { link, before: (Instant::now(), first) })
    }

    fn look(&mut self) -> Result<Rates, Failure> {
        let now = (Instant::now(), picture(&mut self.link)?);
        let seconds = now.0.duration_since(self.before.0).as_secs_f64();
        let rates = Rates::between(&self.before.1, &now.1, seconds);
        self.before = now;
        Ok(rates)
    }
}

fn picture(link: &mut Link) -> Result<Stats, Failure> {
    parse(&link.stats(StatsFormat::Json)?)
}

/// Reads a broker's statistics; who only looks on, as this process does, is left out of its clients.
pub(crate) fn parse(json: &str) -> Result<Stats, Failure> {
    let mut stats: Stats = serde_json::from_str(json).map_err(|error| {
        Failure::failed(format!("cannot understand the broker's statistics: {error}; use broker and command of one release"))
    })?;
    stats.clients.retain(|client| client.pid != std::process::id());
    Ok(stats)
}
