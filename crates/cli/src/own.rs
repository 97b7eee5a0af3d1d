//! A broker of this command's own, which lives as long as the command.

use crate::failure::Failure;
use crate::run::workspace::Workspace;
use bywash_broker::{Broker, BrokerConfig, BrokerHandle};
use bywash_manager::{Manager, ManagerConfig};
use std::thread::JoinHandle;

/// A broker that runs.
pub(crate) struct Own {
    handle: BrokerHandle,
    thread: JoinHandle<bywash_core::Result<()>>,
}

impl Own {
    /// Starts one that only those reach who know the workspace's token.
    pub(crate) fn start(managed: ManagerConfig, workspace: &Workspace) -> Result<Self, Failure> {
        let manager = Manager::new(managed)?;
        let mut config = BrokerConfig::new(workspace.socket(), manager);
        config.run_token = Some(workspace.token().to_owned());
        let broker = Broker::bind(config)?;
        let handle = broker.handle();
        let thread = broker.spawn()?;
        Ok(Self { handle, thread })
    }

    /// Ends it. What could not be drained belongs to processes that go on by themselves.
    pub(crate) fn end(self) {
        self.handle.shutdown();
        let _ = self.thread.join();
    }
}
