//! The screen of `bywash top`, drawn into a buffer: the same for a terminal and for `--once`.

use super::rates::{Busy, Client, Rates, Use};
use crate::terminal::{bytes, thousands};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Row, Table, Widget};

/// Draws everything; what does not fit is cut off at the bottom of its table.
pub(crate) fn draw(rates: &Rates, area: Rect, buffer: &mut Buffer) {
    let engines = rates.engines.len() as u16 + 3;
    let uses = rates.uses.len() as u16 + 3;
    let parts = Layout::vertical([Constraint::Length(1), Constraint::Length(engines), Constraint::Length(uses), Constraint::Min(3)]);
    let [head, top, middle, bottom] = parts.areas(area);
    title(rates).render(head, buffer);
    engine_table(&rates.engines).render(top, buffer);
    use_table(&rates.uses).render(middle, buffer);
    client_table(&rates.clients).render(bottom, buffer);
}

/// The whole screen as lines of text, as high as it needs to be.
pub(crate) fn as_text(rates: &Rates, width: u16) -> String {
    let height = 10 + rates.engines.len() + rates.uses.len() + rates.clients.len();
    let area = Rect::new(0, 0, width, u16::try_from(height).unwrap_or(u16::MAX / width.max(1)));
    let mut buffer = Buffer::empty(area);
    draw(rates, area, &mut buffer);
    let line = |y| (0..area.width).filter_map(|x| buffer.cell((x, y))).map(|cell| cell.symbol()).collect::<String>();
    (0..area.height).map(|y| line(y).trim_end().to_owned() + "\n").collect::<String>()
}

fn title(rates: &Rates) -> Line<'_> {
    let state = if rates.draining { "draining" } else { "serving" };
    let text = format!(
        "bywash top  {state}, policy {}, {} clients, {} sessions, {} in flight   q quits",
        rates.policy,
        rates.clients.len(),
        thousands(rates.sessions),
        thousands(rates.in_flight)
    );
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn table<'a, const N: usize>(name: &'a str, head: [&'static str; N], widths: [u16; N], rows: impl Iterator<Item = Row<'a>>) -> Table<'a> {
    let widths = widths.map(|width| if width == 0 { Constraint::Fill(1) } else { Constraint::Length(width) });
    let head = Row::new(head).style(Style::new().add_modifier(Modifier::DIM));
    Table::new(rows, widths).header(head).block(Block::new().borders(Borders::TOP).title(name))
}

fn engine_table(engines: &[Busy]) -> Table<'_> {
    let rows = engines.iter().map(|engine| {
        let state = if engine.up { "up" } else { "down" };
        let name = if engine.modelled { format!("{} (modelled)", engine.name) } else { engine.name.clone() };
        let row = Row::new([name, state.into(), engine.busy.to_string(), thousands(engine.operations), engine.remarks.clone()]);
        row.style(if engine.up { Style::new() } else { Style::new().fg(Color::Red) })
    });
    table(" engines ", ["engine", "state", "busy", "op/s", ""], [20, 6, 6, 12, 0], rows)
}

fn use_table(uses: &[Use]) -> Table<'_> {
    let rows = uses.iter().map(|each| {
        let rate = if each.public_key { String::new() } else { format!("{}/s", bytes(each.bytes)) };
        Row::new([each.algorithm.clone(), each.place.clone(), thousands(each.operations), rate, thousands(each.total)])
    });
    table(" algorithms ", ["algorithm", "where", "op/s", "rate", "so far"], [0, 20, 14, 14, 18], rows)
}

fn client_table(clients: &[Client]) -> Table<'_> {
    let rows = clients.iter().map(|client| {
        let names = [client.pid, client.uid, client.sessions].map(|number| number.to_string());
        let [pid, uid, sessions] = names;
        Row::new([client.command.clone(), pid, uid, sessions, thousands(client.operations), format!("{}/s", bytes(client.bytes))])
    });
    table(" clients ", ["command", "pid", "uid", "sessions", "op/s", "rate"], [0, 9, 7, 9, 14, 14], rows)
}
