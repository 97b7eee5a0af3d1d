//! A broker's totals since its start, for `bywash stats`.

use super::rates::{is_public_key, place, work};
use crate::explain::time;
use crate::terminal::{bytes, thousands};
use bywash_broker::{DeviceStats, EngineStats, Stats, TenantStats};
use std::fmt::Write;

/// What a reconfigurable engine holds, and what came of it.
pub(super) fn holds(device: &DeviceStats) -> String {
    let DeviceStats { loaded, loading, reconfigurations, failed_reconfigurations, meanwhile, saved_s } = device;
    let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let coming = if loading.is_empty() { String::new() } else { format!(", loading {}", list(loading)) };
    let failed = if *failed_reconfigurations > 0 { format!(" ({} failed)", thousands(*failed_reconfigurations)) } else { String::new() };
    let [loads, meanwhile] = [*reconfigurations, *meanwhile].map(thousands);
    let saved = if *saved_s < 0.0 { format!("{:.3} s slower than elsewhere", -saved_s) } else { format!("{saved_s:.3} s saved") };
    format!("holds {}{coming}; {loads} reconfigurations{failed}, {meanwhile} requests elsewhere meanwhile, {saved}", list(loaded))
}

/// What went wrong with an engine, or with its model, if anything did.
pub(super) fn troubles(engine: &EngineStats) -> String {
    let counts = [(engine.faults, "faults"), (engine.stuck, "stuck"), (engine.late.unwrap_or(0), "answers later than modelled")];
    let some = counts.into_iter().filter(|&(count, _)| count > 0);
    some.map(|(count, what)| format!("{} {what}", thousands(count))).collect::<Vec<_>>().join(", ")
}

/// What a tenant has had of what it was promised.
fn of_tenant(tenant: &TenantStats) -> String {
    let TenantStats { tenant: name, weight, goal_us, clients, requests, share, due, wait_p50_us, wait_p99_us, jain, .. } = tenant;
    let [share, due] = [share, due].map(|part| part * 100.0);
    let goal = match goal_us {
        Some(goal) => format!(", {} of {} not within {}", thousands(tenant.missed), thousands(tenant.deadlines), time(*goal)),
        None => String::new(),
    };
    let switches = if tenant.switches > 0 { format!(", {} changes of session", thousands(tenant.switches)) } else { String::new() };
    let [p50, p99] = [*wait_p50_us, *wait_p99_us].map(time);
    let requests = thousands(*requests);
    format!(
        "tenant {name}: weight {weight}, {clients} clients, {requests} requests, {share:.1} % of engine time (due {due:.1} %), \
         wait p50 {p50}, p99 {p99}, Jain {jain:.3}{switches}{goal}"
    )
}

/// One line about the broker, one for each engine, one for each algorithm in each place, one for each tenant.
pub(crate) fn totals(now: &Stats) -> String {
    let mut text = String::new();
    let state = if now.draining { "draining" } else { "serving" };
    let [clients, sessions, waiting] = [now.clients.len() as u64, now.sessions, now.queue_depth].map(thousands);
    let Stats { pid, policy, uptime_s, .. } = now;
    let _ = writeln!(
        text,
        "broker {pid}: {state} for {uptime_s:.0} s, policy {policy}, {clients} clients, {sessions} sessions, {waiting} in flight"
    );
    for engine in &now.engines {
        let (state, modelled) = (if engine.up { "up" } else { "down" }, if engine.modelled { ", modelled" } else { "" });
        let troubles = Some(troubles(engine)).filter(|said| !said.is_empty()).map_or(String::new(), |said| format!(", {said}"));
        let first = match engine.first {
            Some(true) => ", its thread goes first",
            Some(false) => ", its thread as others",
            None => "",
        };
        let _ = writeln!(text, "engine {}: {state}{modelled}{first}{troubles}, {}", engine.name, engine.description);
        if let Some(device) = &engine.device {
            let _ = writeln!(text, "    {}{modelled}", holds(device));
        }
    }
    let used = work(now);
    if used.is_empty() {
        text.push_str("nothing has been computed yet\n");
    }
    for ((algorithm, engine), (operations, size)) in &used {
        let size = if is_public_key(algorithm) { String::new() } else { bytes(*size) };
        let place = place(now, engine);
        let _ = writeln!(text, "{algorithm:<20} {place:<20} {:>16} operations {size:>12}", thousands(*operations));
    }
    for tenant in &now.tenants {
        let _ = writeln!(text, "{}", of_tenant(tenant));
    }
    let refused: u64 = now.quotas_hit.values().sum();
    if refused + now.denied + now.corrupt > 0 {
        let _ = writeln!(text, "refused: {refused} by quotas, {} without permission; {} clients broke the rules", now.denied, now.corrupt);
    }
    text
}
