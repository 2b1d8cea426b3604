//! The pages as HTML. What is in parentheses is escaped.

use crate::inspect::{Counts, Entry, Inspect, Page, Search, Verb, PAGE};
use crate::web::app::{App, Row};
use crate::web::change::{can_move, Wanted};
use crate::web::form::address;
use crate::web::show::{self, known};
use crate::web::{failed, plot, Asked, Failed};
use maud::{html, Markup, DOCTYPE};

/// The most letters of a payload or an error that are shown.
const LETTERS: usize = 4000;
/// What is shown of them before it is opened.
const SUMMARY: usize = 160;
/// The most letters of a search.
const TEXT: usize = 200;
/// The last page that one can ask for.
const FARTHEST: usize = 1 << 40;
/// The most holders that are shown.
const HOLDERS: usize = 100;

/// A page around its contents.
pub(crate) fn frame(app: &App, asked: Option<&Asked>, title: &str, main: &Markup) -> Markup {
    let form_token = asked.and_then(|asked| asked.form_token.as_deref());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – requeue" }
                link rel="stylesheet" href=(app.link("/board.css"));
                script src=(app.link("/board.js")) defer {}
            }
            body {
                a.skip href="#main" { "To the contents" }
                header {
                    nav {
                        a.home href=(app.link("/")) { "requeue" }
                        a href=(app.link("/changes")) { "Changes" }
                        span #state role="status" {}
                    }
                    @if let Some(token) = form_token {
                        form method="post" action=(app.link("/logout")) { (hidden("form_token", token)) button { "Log out" } }
                    } @else if app.access.is_read_only() {
                        span.note { "read-only" }
                    } @else {
                        a href=(app.link("/login")) { "Log in to change" }
                    }
                }
                main #main { (main) }
            }
        }
    }
}

fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// A form that asks for a change. Nothing without a session.
fn ask(app: &App, asked: &Asked, verb: Verb, fields: &[(&str, &str)], rest: &Markup) -> Markup {
    html! {
        @if let Some(token) = &asked.form_token {
            form.ask method="post" action=(app.link("/confirm")) {
                (hidden("form_token", token)) (hidden("verb", &verb.name()))
                @for (name, value) in fields { (hidden(name, value)) }
                (rest)
            }
        }
    }
}

pub(crate) async fn overview(app: &App, asked: &Asked) -> Markup {
    app.sample_if_old().await;
    let main = html! { h1 { "Queues" } div #live data-from=(app.link("/live")) { (figures(app, "").await) } };
    frame(app, Some(asked), "Queues", &main)
}

/// What changes on a page: of one queue, or of all if the name is empty.
pub(crate) async fn figures(app: &App, name: &str) -> Markup {
    let error = app.error.lock().clone();
    html! {
        @if let Some(error) = error { p.bad role="alert" { "No new figures: " (error) } }
        @match app.find(name) {
            _ if name.is_empty() => (table(app)),
            Some(row) => (queue_figures(app, &row).await),
            None => p.bad { "The queue is gone." },
        }
    }
}

fn table(app: &App) -> Markup {
    let rows = app.rows();
    html! {
        table.queues {
            thead { tr {
                th scope="col" { "Queue" }
                @for head in ["Ready", "Held", "Delayed", "Dead", "In/s", "Out/s", "Oldest"] { th.n scope="col" { (head) } }
            } }
            tbody { @for row in &rows { (table_row(app, row)) } }
        }
        @if rows.is_empty() { p { "There are no queues." } }
    }
}

fn table_row(app: &App, row: &Row) -> Markup {
    let history = row.history();
    let (counts, rates) = (&history.last, history.rates());
    let number = |label: &str, text: String, class: &str| html! { td class={ "n " (class) } data-label=(label) { (text) } };
    let dead = if counts.dead > 0 { "bad" } else { "" };
    html! {
        tr {
            th scope="row" {
                a id={ "q-" (row.name) } href=(app.link(&address("/queue", &[("name", &row.name)]))) { (row.name) }
                (flags(counts, history.error.as_deref()))
            }
            (number("Ready", show::count(counts.ready), ""))
            (number("Held", known(counts.held, show::count), ""))
            (number("Delayed", known(counts.delayed, show::count), ""))
            (number("Dead", show::count(counts.dead), dead))
            (number("In/s", known(rates, |rates| show::rate(rates.0)), ""))
            (number("Out/s", known(rates, |rates| show::rate(rates.1)), ""))
            (number("Oldest", known(counts.oldest, show::time), ""))
        }
    }
}

fn flags(counts: &Counts, error: Option<&str>) -> Markup {
    html! {
        @if counts.is_paused { " " span.flag.warn { "paused" } }
        @if counts.is_closed { " " span.flag { "closed" } }
        @if counts.is_paced { " " span.flag { "paced" } }
        @if let Some(error) = error { " " span.flag.bad title=(error) { "no figures" } }
    }
}

async fn queue_figures(app: &App, row: &Row) -> Markup {
    let holders = row.queue.holders().await;
    let history = row.history();
    let (counts, rates) = (&history.last, history.rates());
    let numbers = [
        ("Ready", show::count(counts.ready)),
        ("Held", known(counts.held, show::count)),
        ("Delayed", known(counts.delayed, show::count)),
        ("Dead", show::count(counts.dead)),
        ("In per second", known(rates, |rates| show::rate(rates.0))),
        ("Out per second", known(rates, |rates| show::rate(rates.1))),
        ("Oldest", known(counts.oldest, show::time)),
        ("Waiting workers", known(counts.waiting, show::count)),
        ("Capacity", known(counts.capacity, show::count)),
    ];
    html! {
        p.flags { (flags(counts, history.error.as_deref())) }
        dl.numbers { @for (name, number) in &numbers { div { dt { (name) } dd { (number) } } } }
        (plot::hour(&history, app.began))
        h2 { "Holders" }
        @match holders {
            Err(error) => p.bad { (error) },
            Ok(holders) if holders.is_empty() => p.note { "Nobody holds items." },
            Ok(holders) => {
                table.holders {
                    thead { tr { th scope="col" { "Worker" } th.n scope="col" { "Items" } th.n scope="col" { "For" } } }
                    tbody { @for holder in holders.iter().take(HOLDERS) { tr {
                        th scope="row" { (holder.name) }
                        td.n data-label="Items" { (show::count(holder.items)) }
                        td.n data-label="For" { (known(holder.since, show::time)) }
                    } } }
                }
                @if holders.len() > HOLDERS { p.note { "and " (holders.len() - HOLDERS) " more" } }
            }
        }
    }
}

fn row_of(app: &App, asked: &Asked, field: &str) -> Result<std::sync::Arc<Row>, Failed> {
    let row = app.find(asked.query.get(field));
    row.ok_or_else(|| Failed(404, "There is no such queue.".into()))
}

pub(crate) async fn queue(app: &App, asked: &Asked) -> Result<Markup, Failed> {
    app.sample_if_old().await;
    let row = row_of(app, asked, "name")?;
    let (name, verbs) = (row.name.as_str(), row.queue.verbs());
    let entries = |dead| app.link(&address("/entries", &[("queue", name), ("dead", dead)]));
    let button = |verb, text| {
        html! {
            @if verbs.contains(&verb) { (ask(app, asked, verb, &[("queue", name)], &html! { button { (text) } })) }
        }
    };
    let pace = html! {
        label { "At most " input name="rate" inputmode="decimal" size="6" placeholder="any"; " per second " }
        button { "Set pace" }
    };
    let main = html! {
        h1 { (name) }
        (done(asked))
        nav.tabs {
            a href=(entries("")) { "Items" }
            a href=(entries("1")) { "Dead letters" }
            (button(Verb::Pause, "Pause")) (button(Verb::Resume, "Resume"))
            @if verbs.contains(&Verb::Pace) { (ask(app, asked, Verb::Pace, &[("queue", name)], &pace)) }
        }
        div #live data-from=(app.link(&address("/live", &[("queue", name)]))) { (figures(app, name).await) }
    };
    Ok(frame(app, Some(asked), name, &main))
}

/// What a change has done, which led to this page.
fn done(asked: &Asked) -> Markup {
    let verb = Verb::named(asked.query.get("verb"));
    let count = asked.query.get("done").parse::<u64>();
    html! { @if let (Some(verb), Ok(count)) = (verb, count) { p.done role="status" { "Done: " (verb.name()) ", " (show::count(count)) } } }
}

/// Looks for entries, unless too many requests do.
pub(crate) async fn look(app: &App, queue: &dyn Inspect, search: Search) -> Result<Page, Failed> {
    let Ok(_look) = app.looks.try_acquire() else {
        return failed(503, "Too many searches at a time: try again.");
    };
    let page = queue.page(search).await;
    page.map_err(|error| Failed(502, error.to_string()))
}

pub(crate) async fn entries(app: &App, asked: &Asked) -> Result<Markup, Failed> {
    let row = row_of(app, asked, "queue")?;
    let (text, _) = show::head(asked.query.get("text"), TEXT);
    let search = Search {
        dead: !asked.query.get("dead").is_empty(),
        text: text.into(),
        page: asked.query.get("page").parse().unwrap_or(0).min(FARTHEST),
    };
    let page = look(app, &*row.queue, search.clone()).await?;
    let (name, dead) = (row.name.as_str(), if search.dead { "1" } else { "" });
    let title = if search.dead { "Dead letters" } else { "Items" };
    let main = html! {
        h1 { a href=(app.link(&address("/queue", &[("name", name)]))) { (name) } " – " (title) }
        form.search role="search" action=(app.link("/entries")) {
            (hidden("queue", name)) (hidden("dead", dead))
            input #search type="search" name="text" value=(text) maxlength=(TEXT) placeholder="contains…" aria-label="Contains";
            button { "Search" }
            span.note { (show::count(page.total)) " found" }
        }
        @if page.total > 0 { (changes_of_entries(app, asked, &row, &search, None)) }
        ol.entries start=(search.range().start.saturating_add(1)) {
            @for entry in &page.entries { li { (entry_of(app, asked, &row, &search, entry)) } }
        }
        @if page.entries.is_empty() { p.note { "Nothing here." } }
        (pager(app, name, dead, &search, &page))
    };
    Ok(frame(app, Some(asked), &format!("{name}: {title}"), &main))
}

fn entry_of(app: &App, asked: &Asked, row: &Row, search: &Search, entry: &Entry) -> Markup {
    html! {
        (long(&entry.payload, "payload"))
        @if let Some(error) = &entry.error { (long(error, "error")) }
        p.note {
            span.flag { (entry.state) }
            " delivered " (entry.attempts) "×"
            @if let Some(age) = entry.age { ", " (show::time(age)) " old" }
            @if let Some(id) = &entry.id { ", id " (id) }
        }
        @if entry.id.is_some() { (changes_of_entries(app, asked, row, search, entry.id.as_deref())) }
    }
}

/// A text that is opened if it is long.
fn long(text: &str, class: &str) -> Markup {
    let (short, is_long) = show::head(text, SUMMARY);
    let (rest, is_cut) = show::head(text, LETTERS);
    html! {
        @if is_long {
            details class=(class) { summary { code { (short) "…" } } pre { (rest) @if is_cut { "…" } } }
        } @else {
            code class=(class) { (short) }
        }
    }
}

/// The changes of one entry, or of all that the search finds.
fn changes_of_entries(
    app: &App,
    asked: &Asked,
    row: &Row,
    search: &Search,
    id: Option<&str>,
) -> Markup {
    let verbs = row.queue.verbs();
    let which = id.map_or(("text", search.text.as_str()), |id| ("id", id));
    let fields = [("queue", row.name.as_str()), which];
    let all = if id.is_some() { "" } else { " all found" };
    let button = |verb, text: &str| {
        html! {
            @if verbs.contains(&verb) { (ask(app, asked, verb, &fields, &html! { button { (text) (all) } })) }
        }
    };
    let mut targets = app.rows();
    targets.retain(|to| can_move(&*row.queue, &*to.queue));
    let target = html! {
        select name="to" aria-label="To the queue" { @for to in &targets { option { (to.name) } } }
        button { "Move" (all) }
    };
    html! {
        div.asks {
            @if search.dead {
                (button(Verb::Retry, "Retry")) (button(Verb::Delete, "Delete"))
                @if verbs.contains(&Verb::Move) && !targets.is_empty() { (ask(app, asked, Verb::Move, &fields, &target)) }
            } @else {
                (button(Verb::Remove, "Remove"))
            }
        }
    }
}

fn pager(app: &App, name: &str, dead: &str, search: &Search, page: &Page) -> Markup {
    let pages = page.total.div_ceil(PAGE as u64);
    let link = |number: usize, text: &str, rel: &str| {
        let number = number.to_string();
        let which = [("queue", name), ("dead", dead), ("text", &search.text)];
        let fields = [&which[..], &[("page", &number)]].concat();
        html! { a rel=(rel) href=(app.link(&address("/entries", &fields))) { (text) } }
    };
    html! {
        nav.pager aria-label="Pages" {
            @if search.page > 0 { (link(0, "« First", "")) (link(search.page - 1, "‹ Previous", "prev")) }
            @if pages > 1 { span { "Page " (show::count(search.page as u64 + 1)) " of " (show::count(pages)) } }
            @if (search.page as u64) + 1 < pages { (link(search.page + 1, "Next ›", "next")) }
        }
    }
}

pub(crate) fn confirm(
    app: &App,
    asked: &Asked,
    wanted: &Wanted,
    count: Option<u64>,
    number: &str,
) -> Markup {
    let name = wanted.row.name.as_str();
    let main = html! {
        h1 { "Confirm" }
        p.question { strong { (name) } ": " (wanted.text) "?" }
        @if let Some(count) = count { p { "That concerns " (show::count(count)) " now." } }
        @if matches!(wanted.verb, Verb::Delete | Verb::Remove) { p.bad { "What is gone cannot be had back." } }
        form.ask method="post" action=(app.link("/change")) {
            (hidden("form_token", asked.form_token.as_deref().unwrap_or_default())) (hidden("number", number))
            button.primary autofocus { "Yes, " (wanted.verb.name()) }
        }
        a href=(app.link(&address("/queue", &[("name", name)]))) { "No" }
    };
    frame(app, Some(asked), "Confirm", &main)
}

pub(crate) fn changes(app: &App, asked: &Asked) -> Markup {
    let logged = app.logged();
    let ago = |at: std::time::SystemTime| known(at.elapsed().ok(), |age| show::time(age) + " ago");
    let main = html! {
        h1 { "Changes" }
        p.note { "The last changes that were made here, until the program ends." }
        @if logged.is_empty() { p { "None yet." } }
        ol.log { @for change in logged { li {
            span.note { (ago(change.at)) } " "
            strong { (change.queue) } ": " (change.change) ": "
            @match change.result {
                Ok(count) => (show::count(count)),
                Err(error) => span.bad { (error) },
            }
        } } }
    };
    frame(app, Some(asked), "Changes", &main)
}

pub(crate) fn login(app: &App, asked: &Asked) -> Markup {
    let main = html! {
        h1 { "Log in" }
        @if app.access.is_read_only() {
            p { "This board was started without a token: it shows the queues, and changes nothing." }
        } @else {
            form.search method="post" action=(app.link("/login")) {
                label { "Token " input type="password" name="token" autocomplete="current-password" autofocus required; }
                button { "Log in" }
            }
        }
    };
    frame(app, Some(asked), "Log in", &main)
}
