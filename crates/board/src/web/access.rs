//! Who may change something: tokens, sessions, and what a request must show.

use crate::web::form::Form;
use crate::web::{failed, Failed};
use axum::http::HeaderMap;
use parking_lot::Mutex;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// How long a session lasts.
const SESSION: Duration = Duration::from_secs(8 * 3600);
/// The most sessions, and the most changes of a session that wait for their confirmation: the oldest are forgotten.
const SESSIONS: usize = 64;
const PENDING: usize = 16;
/// The most wrong tokens in a minute. Then no token is compared until it is over.
const WRONG: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const COOKIE: &str = "requeue_board";

/// A viewer who has shown the token.
#[derive(Debug)]
struct Session {
    id: String,
    /// What its forms contain, so that no other site can make them.
    form_token: String,
    until: Instant,
    /// Changes that were shown for confirmation, each with its number.
    pending: Vec<(String, Form)>,
}

#[derive(Debug, Default)]
struct State {
    sessions: Vec<Session>,
    /// The wrong tokens since this time.
    wrong: Option<(Instant, u32)>,
}

/// The token, and who has shown it.
#[derive(Debug, Default)]
pub(crate) struct Access {
    token: Option<String>,
    state: Mutex<State>,
}

impl Access {
    pub(crate) fn new(token: Option<String>) -> Self {
        let token = token.filter(|token| !token.is_empty());
        Self {
            token,
            ..Self::default()
        }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.token.is_none()
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let (mut state, now) = (self.state.lock(), Instant::now());
        state.sessions.retain(|session| session.until > now);
        act(&mut state)
    }

    /// Begins a session, and returns its id.
    pub(crate) fn log_in(&self, shown: &str) -> Result<String, Failed> {
        let Some(token) = &self.token else {
            return failed(403, "This board is read-only.");
        };
        self.with(|state| {
            let now = Instant::now();
            let (since, wrong) = state
                .wrong
                .filter(|(since, _)| now - *since < MINUTE)
                .unwrap_or((now, 0));
            if wrong >= WRONG {
                return failed(429, "Too many wrong tokens: wait a minute.");
            }
            if !same(token, shown) {
                state.wrong = Some((since, wrong + 1));
                return failed(403, "This is not the token.");
            }
            if state.sessions.len() == SESSIONS {
                state.sessions.remove(0);
            }
            let session = Session {
                id: random(),
                form_token: random(),
                until: now + SESSION,
                pending: Vec::new(),
            };
            let id = session.id.clone();
            state.sessions.push(session);
            Ok(id)
        })
    }

    /// What the forms of a session contain, if it is one.
    pub(crate) fn form_token(&self, session: &str) -> Option<String> {
        self.session(session, |session| session.form_token.clone())
    }

    /// Whether a form was made for this session.
    pub(crate) fn is_from(&self, session: &str, form: &Form) -> bool {
        let token = self.form_token(session);
        token.is_some_and(|token| same(&token, form.get("form_token")))
    }

    /// Keeps a change until it is confirmed, and returns its number.
    pub(crate) fn ask(&self, session: &str, form: Form) -> Option<String> {
        self.session(session, |session| {
            if session.pending.len() == PENDING {
                session.pending.remove(0);
            }
            let number = random();
            session.pending.push((number.clone(), form));
            number
        })
    }

    /// The change that was shown with this number. It can be confirmed once.
    pub(crate) fn confirmed(&self, session: &str, number: &str) -> Option<Form> {
        self.session(session, |session| {
            let place = session.pending.iter().position(|it| same(&it.0, number))?;
            Some(session.pending.remove(place).1)
        })?
    }

    pub(crate) fn log_out(&self, session: &str) {
        self.with(|state| state.sessions.retain(|known| !same(&known.id, session)));
    }

    fn session<R>(&self, id: &str, act: impl FnOnce(&mut Session) -> R) -> Option<R> {
        self.with(|state| {
            let session = state.sessions.iter_mut().find(|known| same(&known.id, id));
            session.map(act)
        })
    }
}

/// Compares secrets of a length in a time that does not depend on them.
fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// 128 random bits.
fn random() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    format!("{:032x}", u128::from_ne_bytes(bytes))
}

/// A header as text; empty if it is not there.
pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// The id of the session that a request has.
pub(crate) fn cookie(headers: &HeaderMap) -> &str {
    let cookies = headers.get_all("cookie").into_iter();
    let cookies = cookies.filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';'));
    let own = pairs.find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='));
    own.unwrap_or_default()
}

/// The name in a `Host`, without its port.
pub(crate) fn host_name(host: &str) -> &str {
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    &host[..end]
}

/// Whether the browser says that another site has sent this, if it says something. `Origin: null` is another site too.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let site = header(headers, "sec-fetch-site");
    let origin = header(headers, "origin");
    let origin_host = origin.split_once("://").map_or(origin, |(_, host)| host);
    !matches!(site, "" | "same-origin" | "none")
        || headers.contains_key("origin") && origin_host != header(headers, "host")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_their_ports() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("localhost.evil.example:1", "localhost.evil.example"),
        ] {
            assert_eq!(host_name(host), name);
        }
    }

    #[test]
    fn old_sessions_are_forgotten() {
        let access = Access::new(Some("secret".into()));
        let first = access.log_in("secret").unwrap();
        for _ in 0..SESSIONS - 1 {
            access.log_in("secret").unwrap();
        }
        assert!(access.form_token(&first).is_some());
        access.log_in("secret").unwrap();
        assert!(access.form_token(&first).is_none());
        assert_eq!(access.with(|state| state.sessions.len()), SESSIONS);
    }

    #[test]
    fn old_questions_are_forgotten() {
        let access = Access::new(Some("secret".into()));
        let session = access.log_in("secret").unwrap();
        let ask = || access.ask(&session, Form::default()).unwrap();
        let first = ask();
        for _ in 0..PENDING {
            ask();
        }
        assert!(access.confirmed(&session, &first).is_none());
        let last = ask();
        assert!(access.confirmed(&session, &last).is_some());
        assert!(access.confirmed(&session, &last).is_none()); // once
    }

    #[test]
    fn an_empty_token_is_none() {
        assert!(Access::new(Some(String::new())).is_read_only());
        assert!(Access::new(None).log_in("").is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end() {
        let access = Access::new(Some("secret".into()));
        let session = access.log_in("secret").unwrap();
        tokio::time::advance(SESSION / 2).await;
        assert!(access.form_token(&session).is_some());
        tokio::time::advance(SESSION / 2).await;
        assert!(access.form_token(&session).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_are_limited_by_the_minute() {
        let access = Access::new(Some("secret".into()));
        for _ in 0..WRONG {
            assert_eq!(access.log_in("guess").unwrap_err().0, 403);
        }
        assert_eq!(access.log_in("secret").unwrap_err().0, 429);
        tokio::time::advance(MINUTE).await;
        assert!(access.log_in("secret").is_ok());
    }
}
