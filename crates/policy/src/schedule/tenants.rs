//! What each client was promised.

use super::News;
use crate::Tenant;
use std::collections::BTreeMap;

/// The clients that are known; all others are [`Tenant::default`].
#[derive(Default)]
pub(super) struct Tenants(BTreeMap<u32, Tenant>);

impl Tenants {
    pub(super) fn tell(&mut self, news: News<'_>) {
        match news {
            News::Joined(client, tenant) => drop(self.0.insert(client, tenant)),
            News::Left(client) => drop(self.0.remove(&client)),
            _ => {}
        }
    }

    pub(super) fn get(&self, client: u32) -> Tenant {
        self.0.get(&client).copied().unwrap_or_default()
    }

    /// At least 1.
    pub(super) fn weight(&self, client: u32) -> f64 {
        f64::from(self.get(client).weight.max(1))
    }
}
