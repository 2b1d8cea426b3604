//! Making a board.

use crate::inspect::{Inspect, Source};
use crate::web::{self, Access, App, Logged, Parts};
use axum::Router;
use std::sync::Arc;

/// A web page for queues, as a router of axum. Without a [token](Self::token) it changes nothing.
///
/// ```
/// use requeue_board::{Board, InMemory};
///
/// let mails = requeue::Queue::<String>::builder().timestamps().max_attempts(3).build();
/// let board: axum::Router = Board::new()
///     .at("/queues")
///     .queue("mails", InMemory::new(&mails))
///     .hosts(["shop.example"]) // besides localhost
///     .token("a long secret")
///     .on_change(|change| println!("{change}"))
///     .into_router();
/// let app = axum::Router::new().merge(board); // and your own routes
/// # let _: axum::Router = app;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It is a `tower::Service` too, for other servers. Layers of the router, such as an authentication of your own, protect it as any other.
#[must_use = "a board does nothing without a server"]
#[derive(Default)]
pub struct Board {
    parts: Parts,
    token: Option<String>,
}

impl Board {
    /// A board without queues.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where it is mounted, such as `/queues`: its links begin with it. At the root of the server by default.
    ///
    /// # Panics
    ///
    /// [`into_router`](Self::into_router) does if the path does not begin with `/`, or has parameters.
    pub fn at(mut self, path: &str) -> Self {
        self.parts.base = path.trim_end_matches('/').into();
        self
    }

    /// Shows a queue under this name, which is not empty. Of two with the same name the first is shown.
    pub fn queue(self, name: &str, queue: impl Inspect) -> Self {
        self.shared(name, Arc::new(queue))
    }

    /// Shows a queue that is shared with others.
    pub fn shared(mut self, name: &str, queue: Arc<dyn Inspect>) -> Self {
        self.parts.fixed.push((name.into(), queue));
        self
    }

    /// Shows the queues of a source.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.parts.sources.push(Box::new(source));
        self
    }

    /// Allows changes to those who show this secret. It should be long and random: 10 wrong ones a minute are compared.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Shows nothing without the token. With no token, nothing at all.
    pub fn private(mut self) -> Self {
        self.parts.private = true;
        self
    }

    /// The names by which browsers reach it, without ports, besides `localhost`, `127.0.0.1` and `[::1]`. A request with another `Host` is
    /// refused, since a page of another site may have its name resolve to this server.
    pub fn hosts<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(|name| name.into().to_lowercase());
        self.parts.hosts.extend(names);
        self
    }

    /// Tells browsers to send the cookie by HTTPS only. For servers that are reached so.
    pub fn secure(mut self) -> Self {
        self.parts.secure = true;
        self
    }

    /// Samples the counts also while nobody looks, every 10 seconds, so that the plot of the last hour has no gaps. Otherwise a board that
    /// nobody looks at does nothing.
    pub fn always(mut self) -> Self {
        self.parts.always = true;
        self
    }

    /// Calls a function after each change, such as for a log. The board shows the last 200 itself.
    pub fn on_change(mut self, tell: impl Fn(&Logged) + Send + Sync + 'static) -> Self {
        self.parts.tell = Some(Box::new(tell));
        self
    }

    /// The pages of the board.
    ///
    /// # Panics
    ///
    /// If it samples [always](Self::always) and this is not called in a runtime of tokio, and if the path [is none](Self::at).
    pub fn into_router(self) -> Router {
        web::router(App::new(self.parts, Access::new(self.token)))
    }
}

requeue::debug_struct!([] Board);
