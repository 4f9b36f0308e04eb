//! Messages on standard input and output, and whether anybody is at their other end.

use std::future::Future;
use std::io;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;
use tokio::time::Instant;

use super::lines::Lines;

/// Standard input and output.
pub(super) struct Pipes {
    lines: Lines,
    closed: watch::Sender<Option<Instant>>,
}

impl Pipes {
    /// The pipes, and what tells when one of them was closed.
    pub(super) fn new() -> (Self, watch::Receiver<Option<Instant>>) {
        let (closed, when) = watch::channel(None);
        let lines = Lines::new();
        (Self { lines, closed }, when)
    }
}

/// Waits until a pipe is closed, and tells when it was.
pub(super) async fn until_closed(mut when: watch::Receiver<Option<Instant>>) -> Instant {
    let closed = when.wait_for(Option::is_some).await;
    // Pipes that are gone are closed.
    closed
        .ok()
        .and_then(|closed| *closed)
        .unwrap_or_else(Instant::now)
}

fn close(closed: &watch::Sender<Option<Instant>>) {
    closed.send_if_modified(|when| when.replace(when.unwrap_or_else(Instant::now)).is_none());
}

impl Transport<RoleServer> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let sent = self.lines.send(message);
        let closed = self.closed.clone();
        async move {
            let sent = sent.await;
            if sent.is_err() {
                close(&closed);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = tokio::select! {
            message = self.lines.receive() => message,
            _ = until_closed(self.closed.subscribe()) => None,
        };
        if message.is_none() {
            close(&self.closed);
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}
