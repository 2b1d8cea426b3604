//! The pages: requests and what they are answered.

mod access;
mod app;
mod change;
mod form;
mod live;
mod pages;
mod plot;
mod show;

pub(crate) use access::Access;
pub use app::Logged;
pub(crate) use app::{App, Parts};

use access::{cookie, header, host_name, is_foreign, COOKIE};
use axum::body::{to_bytes, Body};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::Router;
use form::Form;
use futures_util::stream::unfold;
use live::Place;
use maud::{html, Markup};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The longest form, in bytes, and how long it may take to come.
const FORM: usize = 64 * 1024;
const FORM_TIME: Duration = Duration::from_secs(10);
/// The most items and dead letters that are looked for at a time, in requests.
const LOOKS: usize = 4;

const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Not `no-referrer`, with which forms have no origin.
    ("referrer-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// The answer to a request: a page, or why there is none.
pub(crate) type Answer = Result<Response, Failed>;

/// A request that fails, with what the viewer is told.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) u16, pub(crate) String);

pub(crate) fn failed<T>(status: u16, text: &str) -> Result<T, Failed> {
    Err(Failed(status, text.into()))
}

/// What a request says, without its body.
pub(crate) struct Asked {
    pub(crate) query: Form,
    pub(crate) session: String,
    /// What forms contain, if the session is one.
    pub(crate) form_token: Option<String>,
    /// Whether it comes from another site.
    is_foreign: bool,
}

pub(crate) fn router(app: App) -> Router {
    let path = app.base.clone();
    let app = Arc::new(app);
    if app.always {
        live::start(&app);
    }
    let pages = Router::new().fallback(handle).with_state(app);
    match path.as_str() {
        "" => pages,
        path => Router::new().nest_service(path, pages),
    }
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    let answered = answer(&app, request).await;
    let mut response = answered.unwrap_or_else(|Failed(status, text)| {
        let main = html! { h1 { (status) } p { (text) } };
        let mut response = page(pages::frame(&app, None, "Error", &main));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        response
    });
    for (name, value) in HEADERS {
        let header = response.headers_mut().entry(name);
        header.or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn answer(app: &Arc<App>, request: Request) -> Answer {
    let (head, body) = request.into_parts();
    check_host(app, &head.headers)?;
    let path = head.uri.path().trim_end_matches('/');
    if let (&Method::GET, Some(file)) = (&head.method, file(path)) {
        return Ok(file);
    }
    let session = cookie(&head.headers).to_owned();
    let asked = Asked {
        query: Form::parse(head.uri.query().unwrap_or_default().as_bytes()),
        form_token: app.access.form_token(&session),
        is_foreign: is_foreign(&head.headers),
        session,
    };
    if head.method == Method::POST {
        return post(app, &asked, path, body).await;
    }
    if head.method != Method::GET {
        return failed(405, "This method is not known here.");
    }
    if path == "/login" {
        return Ok(page(pages::login(app, &asked)));
    }
    if app.private && asked.form_token.is_none() {
        return Ok(redirect(app, "/login"));
    }
    match path {
        "" => Ok(page(pages::overview(app, &asked).await)),
        "/queue" => pages::queue(app, &asked).await.map(page),
        "/entries" => pages::entries(app, &asked).await.map(page),
        "/changes" => Ok(page(pages::changes(app, &asked))),
        "/live" => watch(app, &asked),
        _ => failed(404, "There is no such page."),
    }
}

fn check_host(app: &App, headers: &HeaderMap) -> Result<(), Failed> {
    let name = host_name(header(headers, "host")).to_lowercase();
    let own = ["localhost", "127.0.0.1", "[::1]"];
    if own.contains(&name.as_str()) || app.hosts.contains(&name) {
        return Ok(());
    }
    failed(421, "Not served under this name: see `Board::hosts`.")
}

fn file(path: &str) -> Option<Response> {
    let (kind, text) = match path {
        "/board.css" => ("text/css; charset=utf-8", include_str!("board.css")),
        "/board.js" => ("text/javascript; charset=utf-8", include_str!("board.js")),
        _ => return None,
    };
    let headers = [("content-type", kind), ("cache-control", "max-age=300")];
    Some((headers, text).into_response())
}

async fn post(app: &Arc<App>, asked: &Asked, path: &str, body: Body) -> Answer {
    if asked.is_foreign {
        return failed(403, "This form comes from another site.");
    }
    let Ok(bytes) = timeout(FORM_TIME, to_bytes(body, FORM)).await else {
        return failed(408, "The form took too long.");
    };
    let Ok(bytes) = bytes else {
        return failed(413, "The form is too long.");
    };
    let form = Form::parse(&bytes);
    if path == "/login" {
        return log_in(app, form.get("token"));
    }
    if asked.form_token.is_none() {
        return failed(403, "Log in first.");
    }
    if !app.access.is_from(&asked.session, &form) {
        return failed(403, "This form was not made for you: load its page again.");
    }
    match path {
        "/confirm" => change::confirm(app, asked, form).await.map(page),
        "/change" => change::make(app, asked, form.get("number")).await,
        "/logout" => {
            app.access.log_out(&asked.session);
            Ok(redirect(app, "/"))
        }
        _ => failed(404, "There is no such form."),
    }
}

fn log_in(app: &App, token: &str) -> Answer {
    let session = app.access.log_in(token)?;
    let path = if app.base.is_empty() { "/" } else { &app.base };
    let secure = if app.secure { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={session}; Path={path}; HttpOnly; SameSite=Strict{secure}");
    let mut response = redirect(app, "/");
    if let Ok(cookie) = cookie.parse() {
        response.headers_mut().insert("set-cookie", cookie);
    }
    Ok(response)
}

/// The figures of a page, each time they are sampled.
fn watch(app: &Arc<App>, asked: &Asked) -> Answer {
    let Some(place) = Place::take(app) else {
        return failed(503, "Too many viewers.");
    };
    let queue = asked.query.get("queue").to_owned();
    let events = unfold((place, queue), |(mut place, queue)| async move {
        let figures = pages::figures(place.next().await?, &queue).await;
        let event = Event::default().event("figures").data(figures.0);
        Some((Ok::<_, Infallible>(event), (place, queue)))
    });
    Ok(Sse::new(events).into_response())
}

fn page(markup: Markup) -> Response {
    let kind = [("content-type", "text/html; charset=utf-8")];
    (kind, markup.into_string()).into_response()
}

/// Another page of the board, by GET.
fn redirect(app: &App, to: &str) -> Response {
    let place = app.link(to);
    (StatusCode::SEE_OTHER, [("location", place)]).into_response()
}
