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
        let bad = |text: &str| Failed(400, text.into());
        let row = app
            .find(form.get("queue"))
            .ok_or_else(|| bad("There is no such queue."))?;
        let verb = Verb::named(form.get("verb")).filter(|verb| row.queue.verbs().contains(verb));
        let verb = verb.ok_or_else(|| bad("This queue does not offer that."))?;
        let pick = match form.get("id") {
            "" => Pick::Matching(form.get("text").into()),
            id => Pick::One(id.into()),
        };
        let dead = verb != Verb::Remove;
        let which = pick_text(&pick, dead);
        let (change, text) = match verb {
            Verb::Pause => (Change::Pause, "pause the queue".into()),
            Verb::Resume => (Change::Resume, "resume the queue".into()),
            Verb::Pace => pace(form.get("rate"))
                .ok_or_else(|| bad("The pace is a number of items per second."))?,
            Verb::Retry => (Change::Retry(pick.clone()), format!("retry {which}")),
            Verb::Delete => (Change::Delete(pick.clone()), format!("delete {which}")),
            Verb::Remove => (
                Change::Remove(pick.clone()),
                format!("remove {which} that nobody holds"),
            ),
            Verb::Move => {
                let to = form.get("to");
                let target = app.find(to).filter(|to| can_move(&*row.queue, &*to.queue));
                let target = target
                    .ok_or_else(|| bad("Dead letters of this queue cannot be moved there."))?;
                let to = Arc::clone(&target.queue);
                (
                    Change::Move(pick.clone(), to),
                    format!("move {which} to the queue {}", target.name),
                )
            }
        };
        let of = match pick {
            Pick::Matching(text) if verb as u8 >= Verb::Retry as u8 => Some(Search {
                dead,
                text,
                page: 0,
            }),
            _ => None,
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

fn pace(rate: &str) -> Option<(Change, String)> {
    if rate.is_empty() {
        return Some((
            Change::Pace(None),
            "start any number of items per second".into(),
        ));
    }
    let rate: f64 = rate
        .parse()
        .ok()
        .filter(|rate| (1e-6..=1e9).contains(rate))?;
    Some((
        Change::Pace(Some(rate)),
        format!("start at most {rate} items per second"),
    ))
}

/// Shows a change, which is made when it is confirmed.
pub(crate) async fn confirm(app: &Arc<App>, asked: &Asked, form: Form) -> Result<Markup, Failed> {
    let wanted = Wanted::read(app, &form)?;
    let count = match &wanted.of {
        Some(search) => Some(
            pages::look(app, &*wanted.row.queue, search.clone())
                .await?
                .total,
        ),
        None => None,
    };
    let Some(number) = app.access.ask(&asked.session, form) else {
        return failed(403, "Log in first.");
    };
    Ok(pages::confirm(app, asked, &wanted, count, &number))
}

/// Makes the change that was shown with this number.
pub(crate) async fn make(app: &Arc<App>, asked: &Asked, number: &str) -> Answer {
    let Some(form) = app.access.confirmed(&asked.session, number) else {
        return failed(
            403,
            "This change was not shown for confirmation, or is confirmed already.",
        );
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
            let count = count.to_string();
            let done = [
                ("name", name.as_str()),
                ("verb", verb.name()),
                ("done", &count),
            ];
            Ok(redirect(&app, &address("/queue", &done)))
        }
        Ok((_, Err(error))) => failed(409, &error),
        Err(_) => failed(500, "The change ended by a panic."),
    }
}
