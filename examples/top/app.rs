//! The state of the view: what is shown and selected, and the key bindings.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::history::History;
use super::plant::Shop;
use super::tasks::Trade;

/// The running queues, their history, and the selection.
pub(crate) struct App {
    pub(crate) shops: Vec<Shop>,
    /// One entry per shop.
    pub(crate) histories: Vec<History>,
    /// The selected shop.
    pub(crate) shop: usize,
    /// The selected worker of that shop.
    pub(crate) worker: usize,
    /// The effect of the last key.
    pub(crate) message: String,
    started: Instant,
}

impl App {
    pub(crate) fn start() -> Self {
        let shops: Vec<_> = Trade::ALL.map(Shop::open).into();
        Self {
            histories: shops.iter().map(|_| History::default()).collect(),
            shops,
            shop: 0,
            worker: 0,
            message: String::new(),
            started: Instant::now(),
        }
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Samples the counts of all queues.
    pub(crate) fn sample(&mut self) {
        for (shop, history) in self.shops.iter().zip(&mut self.histories) {
            history.add(Instant::now(), shop.queue.stats());
        }
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> ControlFlow<()> {
        let workers = self.shops[self.shop].trade.workers();
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return ControlFlow::Break(()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return ControlFlow::Break(());
            }
            KeyCode::Tab | KeyCode::Right => self.select(self.shop + 1),
            KeyCode::BackTab | KeyCode::Left => self.select(self.shop + self.shops.len() - 1),
            KeyCode::Down => self.worker = (self.worker + 1) % workers,
            KeyCode::Up => self.worker = (self.worker + workers - 1) % workers,
            KeyCode::Char('p') => self.toggle(),
            KeyCode::Char('r') => self.requeue(),
            KeyCode::Char('+') => self.shops[self.shop].raise_load(),
            KeyCode::Char('-') => self.shops[self.shop].lower_load(),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn select(&mut self, shop: usize) {
        self.shop = shop % self.shops.len();
        self.worker = 0;
    }

    fn toggle(&mut self) {
        let shop = &mut self.shops[self.shop];
        let change = if shop.toggle(self.worker) {
            "pauses"
        } else {
            "goes on"
        };
        self.message = format!("{}-{} {change}", shop.trade.name(), self.worker);
    }

    fn requeue(&mut self) {
        let shop = &self.shops[self.shop];
        let count = shop.queue.dead_letters().requeue_all();
        self.message = format!("{}: {count} dead letters are back", shop.trade.name());
    }

    /// Stops everything, and checks that no queue has lost an item.
    pub(crate) fn stop(self) -> Result<(), String> {
        for shop in self.shops {
            let name = shop.trade.name();
            let stats = shop.close();
            // A closed output is no error.
            let _ = writeln!(
                io::stdout(),
                "{name}: {} pushed, {} ready, {} delayed, {} committed, {} dead",
                stats.pushed,
                stats.ready,
                stats.delayed,
                stats.committed,
                stats.dead
            );
            stats.check().map_err(|lost| format!("{name}: {lost}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use requeue::WorkerState;

    use super::super::tasks::Task;
    use super::*;

    fn press(app: &mut App, keys: &[KeyCode]) -> ControlFlow<()> {
        keys.iter().try_for_each(|&code| app.press(code.into()))
    }

    #[test]
    fn keys_select_a_queue_and_a_worker_of_it() {
        let mut app = App::start();
        let select = |app: &mut App, keys: &[KeyCode]| {
            assert!(press(app, keys).is_continue());
            (app.shop, app.worker)
        };
        assert_eq!(select(&mut app, &[KeyCode::Up]), (0, 2));
        assert_eq!(select(&mut app, &[KeyCode::Tab]), (1, 0));
        assert_eq!(select(&mut app, &[KeyCode::Down, KeyCode::Down]), (1, 0));
        assert_eq!(select(&mut app, &[KeyCode::Right, KeyCode::Right]), (0, 0));
        assert_eq!(select(&mut app, &[KeyCode::Left]), (2, 0));
        assert!(press(&mut app, &[KeyCode::Char('q')]).is_break());
    }

    #[test]
    fn the_load_stays_in_its_bounds() {
        let mut app = App::start();
        let mut load = |key, times| {
            let keys = vec![KeyCode::Char(key); times];
            assert!(press(&mut app, &keys).is_continue());
            (app.shops[0].load(), app.shops[1].load())
        };
        assert_eq!(load('+', 1), (125, 100));
        assert_eq!(load('-', 9), (0, 100));
        assert_eq!(load('+', 99), (400, 100));
    }

    #[test]
    fn the_selected_worker_pauses_and_goes_on() {
        let mut app = App::start();
        let states = |app: &App| -> Vec<_> {
            let workers = app.shops[0].workers();
            workers.map(|(status, _)| status.state).collect()
        };
        let _ = press(&mut app, &[KeyCode::Down, KeyCode::Char('p')]);
        while states(&app)[1] != WorkerState::Paused {
            thread::yield_now();
        }
        assert_ne!(states(&app)[0], WorkerState::Paused);
        let _ = press(&mut app, &[KeyCode::Char('p')]);
        while states(&app)[1] == WorkerState::Paused {
            thread::yield_now();
        }
        assert_eq!(app.message, "mail-1 goes on");
    }

    #[test]
    fn dead_letters_go_back() {
        let mut app = App::start();
        let _ = press(&mut app, &[KeyCode::Tab]);
        let _ = press(&mut app, &[KeyCode::Char('-'); 4]);
        let images = app.shops[1].queue.clone();
        images.push(Task(25)).unwrap();
        images.wait_idle();
        let _ = press(&mut app, &[KeyCode::Char('r')]);
        assert_eq!(app.message, "images: 1 dead letters are back");
        assert!(images.dead_letters().is_empty());
        assert_eq!(app.stop(), Ok(()));
    }
}
