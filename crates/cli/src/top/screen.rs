//! The screen of `bywash top`, drawn into a buffer: the same for a terminal and for `--once`.

use super::rates::{Busy, Client, Rates, Tenant, Use};
use crate::explain::time;
use crate::terminal::{bytes, thousands};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Row, Table, Widget};
use std::array;

/// A table's columns: each with its heading and the least that it is wide, so that columns do not jump with every figure.
type Columns<const N: usize> = [(&'static str, usize); N];
/// What is in a table: of each row its cells, of several lines perhaps, and how it looks.
type Rows<const N: usize> = Vec<([String; N], Style)>;

const ENGINES: Columns<5> = [("engine", 18), ("state", 5), ("busy", 4), ("op/s", 9), ("", 0)];
const USES: Columns<5> = [("algorithm", 16), ("where", 18), ("op/s", 9), ("rate", 10), ("so far", 11)];
const TENANTS: Columns<8> =
    [("tenant", 16), ("weight", 6), ("clients", 7), ("req/s", 9), ("share", 7), ("due", 7), ("wait p99", 10), ("missed", 6)];
const CLIENTS: Columns<6> = [("command", 16), ("pid", 7), ("uid", 6), ("sessions", 8), ("op/s", 9), ("rate", 10)];
/// Between two columns.
const GAP: usize = 2;

/// Draws everything, `hint` behind the title; what does not fit is cut off at the bottom of its table.
pub(crate) fn draw(rates: &Rates, hint: &str, area: Rect, buffer: &mut Buffer) {
    let engines = engine_rows(&rates.engines, area.width.into());
    let uses = use_rows(&rates.uses);
    let tenants = tenant_rows(&rates.tenants);
    let [top, middle, lower] = [height(&engines), height(&uses), height_if_any(&tenants)].map(Constraint::Length);
    let [head, top, middle, lower, bottom] = Layout::vertical([Constraint::Length(1), top, middle, lower, Constraint::Min(3)]).areas(area);
    title(rates, hint).render(head, buffer);
    table(" engines ", &ENGINES, engines).render(top, buffer);
    table(" algorithms ", &USES, uses).render(middle, buffer);
    if !tenants.is_empty() {
        table(" tenants ", &TENANTS, tenants).render(lower, buffer);
    }
    table(" clients ", &CLIENTS, client_rows(&rates.clients)).render(bottom, buffer);
}

/// The whole screen as lines of text, as high as it needs to be.
pub(crate) fn as_text(rates: &Rates, width: u16) -> String {
    let heights = [
        height(&engine_rows(&rates.engines, width.into())),
        height(&use_rows(&rates.uses)),
        height_if_any(&tenant_rows(&rates.tenants)),
        height(&client_rows(&rates.clients)),
    ];
    let height = heights.into_iter().fold(1, u16::saturating_add);
    let area = Rect::new(0, 0, width, height.min(u16::MAX / width.max(1)));
    let mut buffer = Buffer::empty(area);
    draw(rates, "", area, &mut buffer);
    let line = |y| (0..area.width).filter_map(|x| buffer.cell((x, y))).map(|cell| cell.symbol()).collect::<String>();
    (0..area.height).map(|y| line(y).trim_end().to_owned() + "\n").collect::<String>()
}

fn title<'a>(rates: &Rates, hint: &str) -> Line<'a> {
    let state = if rates.draining { "draining" } else { "serving" };
    let text = format!(
        "{state}, policy {}, {} clients, {} sessions, {} in flight{hint}",
        rates.policy,
        rates.clients.len(),
        thousands(rates.sessions),
        thousands(rates.in_flight)
    );
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

/// What is wrong with an engine, and what it holds, stands beside its figures, in as many lines as that takes.
fn engine_rows(engines: &[Busy], width: usize) -> Rows<5> {
    let row = |engine: &Busy| {
        let name = if engine.modelled { format!("{} (modelled)", engine.name) } else { engine.name.clone() };
        let state = if engine.up { "up" } else { "down" };
        let style = if engine.up { Style::new() } else { Style::new().fg(Color::Red) };
        ([name, state.into(), engine.busy.to_string(), thousands(engine.operations), String::new()], style)
    };
    let mut rows: Rows<5> = engines.iter().map(row).collect();
    let used: usize = widths(&ENGINES, &rows).iter().map(|width| width + GAP).sum();
    for (row, engine) in rows.iter_mut().zip(engines) {
        row.0[4] = wrapped(&engine.remarks, width.saturating_sub(used - GAP));
    }
    rows
}

fn use_rows(uses: &[Use]) -> Rows<5> {
    let row = |each: &Use| {
        let rate = if each.public_key { String::new() } else { format!("{}/s", bytes(each.bytes)) };
        ([each.algorithm.clone(), each.place.clone(), thousands(each.operations), rate, thousands(each.total)], Style::new())
    };
    uses.iter().map(row).collect()
}

fn tenant_rows(tenants: &[Tenant]) -> Rows<8> {
    let row = |tenant: &Tenant| {
        let [share, due] = [tenant.share, tenant.due].map(|part| format!("{part:.1} %"));
        let [requests, missed] = [tenant.requests, tenant.missed].map(thousands);
        let (weight, clients) = (tenant.weight.to_string(), thousands(tenant.clients));
        let style = if tenant.missed > 0 { Style::new().fg(Color::Red) } else { Style::new() };
        ([tenant.name.clone(), weight, clients, requests, share, due, time(tenant.wait_p99_us), missed], style)
    };
    tenants.iter().map(row).collect()
}

fn client_rows(clients: &[Client]) -> Rows<6> {
    let row = |client: &Client| {
        let [pid, uid, sessions] = [client.pid, client.uid, client.sessions].map(|number| number.to_string());
        let rate = format!("{}/s", bytes(client.bytes));
        ([client.command.clone(), pid, uid, sessions, thousands(client.operations), rate], Style::new())
    };
    clients.iter().map(row).collect()
}

/// Each column as wide as the widest that is in it.
fn widths<const N: usize>(columns: &Columns<N>, rows: &Rows<N>) -> [usize; N] {
    let widest = |cell: &String| cell.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    array::from_fn(|place| {
        let (head, least) = columns[place];
        rows.iter().map(|(cells, _)| widest(&cells[place])).fold(head.len().max(least), usize::max)
    })
}

/// Lines of a row.
fn lines<const N: usize>(cells: &[String; N]) -> u16 {
    cells.iter().map(|cell| cell.lines().count()).max().unwrap_or(0).max(1) as u16
}

/// Lines of a table with its title, its heading and an empty one.
fn height<const N: usize>(rows: &Rows<N>) -> u16 {
    rows.iter().map(|(cells, _)| lines(cells)).fold(3, u16::saturating_add)
}

/// None for a table that is left out when there is nothing in it.
fn height_if_any<const N: usize>(rows: &Rows<N>) -> u16 {
    if rows.is_empty() { 0 } else { height(rows) }
}

fn table<'a, const N: usize>(name: &'a str, columns: &Columns<N>, rows: Rows<N>) -> Table<'a> {
    let widths = widths(columns, &rows).map(|width| Constraint::Length(width as u16));
    let head = Row::new(columns.map(|(head, _)| head)).style(Style::new().add_modifier(Modifier::DIM));
    let rows = rows.into_iter().map(|(cells, style)| {
        let height = lines(&cells);
        Row::new(cells).height(height).style(style)
    });
    Table::new(rows, widths).column_spacing(GAP as u16).header(head).block(Block::new().borders(Borders::TOP).title(name))
}

/// Broken between words into lines of at most so many characters, but for words that are longer.
fn wrapped(text: &str, width: usize) -> String {
    let (mut broken, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        let more = word.chars().count();
        let fits = used + 1 + more <= width;
        if !broken.is_empty() {
            broken.push(if fits { ' ' } else { '\n' });
        }
        used = if fits && !broken.is_empty() { used + 1 + more } else { more };
        broken.push_str(word);
    }
    broken
}
