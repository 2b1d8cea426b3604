//! Changes: what a form asks for, its confirmation, and making it.

use crate::inspect::{Change, Inspect, Pick, Search, Verb};
use crate::web::app::{App, Logged, Row};
use crate::web::form::{address, Form};
use crate::web::{failed, pages, redirect, Answer, Asked, Failed};
use maud::Markup;
use std::sync::Arc;
use std::time::SystemTime;

/// A change that a form asks for.
pub(crate) struct Wanted {
    pub(crate) row: Arc<Row>,
    pub(crate) verb: Verb,
    change: Change,
    /// The items it may concern.
    of: Option<Search>,
    /// In words.
    pub(crate) text: String,
}

impl Wanted {
    fn read(app: &App, form: &Form) -> Result<Self, Failed> {
        let row = app.find(form.get("queue"));
        let row = row.ok_or_else(|| bad("There is no such queue."))?;
        let verb = Verb::named(form.get("verb")).filter(|verb| row.queue.verbs().contains(verb));
        let verb = verb.ok_or_else(|| bad("This queue does not offer that."))?;
        let pick = match form.get("id") {
            "" => Pick::Matching(form.get("text").into()),
            id => Pick::One(id.into()),
        };
        let dead = verb != Verb::Remove;
        let (which, of) = (pick_text(&pick, dead), searched(&pick, verb));
        let (change, text) = match verb {
            Verb::Pause => (Change::Pause, "pause the queue".into()),
            Verb::Resume => (Change::Resume, "resume the queue".into()),
            Verb::Pace => pace(form.get("rate"))?,
            Verb::Retry => (Change::Retry(pick), format!("retry {which}")),
            Verb::Delete => (Change::Delete(pick), format!("delete {which}")),
            Verb::Remove => (Change::Remove(pick), format!("remove {which}")),
            Verb::Move => {
                let to = app.find(form.get("to"));
                let to = to.filter(|to| can_move(&*row.queue, &*to.queue));
                let to = to.ok_or_else(|| bad("Dead letters cannot be moved there."))?;
                let text = format!("move {which} to the queue {}", to.name);
                (Change::Move(pick, Arc::clone(&to.queue)), text)
            }
        };
        Ok(Self {
            row,
            verb,
            change,
            of,
            text,
        })
    }
}

fn bad(text: &str) -> Failed {
    Failed(400, text.into())
}

/// What finds the items that a change concerns, if it concerns more than one.
fn searched(pick: &Pick, verb: Verb) -> Option<Search> {
    let Pick::Matching(text) = pick else {
        return None;
    };
    let (dead, text, page) = (verb != Verb::Remove, text.clone(), 0);
    let is_one = matches!(verb, Verb::Pause | Verb::Resume | Verb::Pace);
    (!is_one).then_some(Search { dead, text, page })
}

/// Whether dead letters can be moved to another queue.
pub(crate) fn can_move(from: &dyn Inspect, to: &dyn Inspect) -> bool {
    !std::ptr::addr_eq(from, to) && from.item_type().is_some() && from.item_type() == to.item_type()
}

fn pick_text(pick: &Pick, dead: bool) -> String {
    let (one, all) = if dead {
        ("the dead letter", "all dead letters")
    } else {
        ("the item", "all items")
    };
    match pick {
        Pick::One(id) => format!("{one} {id}"),
        Pick::Matching(text) if text.is_empty() => all.into(),
        Pick::Matching(text) => format!("{all} that contain {text:?}"),
    }
}

fn pace(rate: &str) -> Result<(Change, String), Failed> {
    if rate.is_empty() {
        let text = "start any number of items per second";
        return Ok((Change::Pace(None), text.into()));
    }
    let rate = rate.parse().ok();
    let rate: Option<f64> = rate.filter(|rate| (1e-6..=1e9).contains(rate));
    let rate = rate.ok_or_else(|| bad("The pace is a number of items per second."))?;
    let text = format!("start at most {rate} items per second");
    Ok((Change::Pace(Some(rate)), text))
}

/// Shows a change, which is made when it is confirmed.
pub(crate) async fn confirm(app: &Arc<App>, asked: &Asked, form: Form) -> Result<Markup, Failed> {
    let wanted = Wanted::read(app, &form)?;
    let mut count = None;
    if let Some(search) = wanted.of.clone() {
        count = Some(pages::look(app, &*wanted.row.queue, search).await?.total);
    }
    let Some(number) = app.access.ask(&asked.session, form) else {
        return failed(403, "Log in first.");
    };
    Ok(pages::confirm(app, asked, &wanted, count, &number))
}

/// Makes the change that was shown with this number.
pub(crate) async fn make(app: &Arc<App>, asked: &Asked, number: &str) -> Answer {
    let Some(form) = app.access.confirmed(&asked.session, number) else {
        return failed(403, "This change was not shown, or is confirmed already.");
    };
    let Wanted {
        row,
        verb,
        change,
        text,
        ..
    } = Wanted::read(app, &form)?;
    let (app, name) = (Arc::clone(app), row.name.clone());
    // A task of its own goes on if the viewer does not wait for it.
    let made = tokio::spawn(async move {
        let result = row
            .queue
            .change(change)
            .await
            .map_err(|error| error.to_string());
        app.log(Logged {
            at: SystemTime::now(),
            queue: row.name.clone(),
            change: text,
            result: result.clone(),
        });
        app.sample().await;
        (app, result)
    });
    match made.await {
        Ok((app, Ok(count))) => {
            let (verb, count) = (verb.name(), count.to_string());
            let done = [("name", &*name), ("verb", &verb), ("done", &count)];
            Ok(redirect(&app, &address("/queue", &done)))
        }
        Ok((_, Err(error))) => failed(409, &error),
        Err(_) => failed(500, "The change ended by a panic."),
    }
}
