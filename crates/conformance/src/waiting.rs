//! Calls that wait.

use crate::steps::eventually;
use crate::Subject;
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;
use tokio::select;
use tokio::time::sleep;

/// Remembers that it was woken, and wakes the task that looks.
#[derive(Default)]
struct Bell {
    has_rung: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.has_rung.store(true, Ordering::SeqCst);
        let listener = self.listener.lock().unwrap().take();
        listener.into_iter().for_each(Waker::wake);
    }
}

/// A future that waits. It is polled only after it was woken, so that a wake-up that is lost is noticed.
pub(crate) struct Waiting<'f, T> {
    future: Pin<Box<dyn Future<Output = T> + 'f>>,
    bell: Arc<Bell>,
    /// Its output, if it came before this case went on.
    early: Option<T>,
}

impl<'f, T> Waiting<'f, T> {
    /// Polls a future until it waits for items of the queue; it must not be ready.
    pub(crate) async fn begin<S: Subject>(
        queue: &S::Queue,
        future: impl Future<Output = T> + 'f,
    ) -> Self {
        let mut waiting = Self {
            future: Box::pin(future),
            bell: Arc::default(),
            early: None,
        };
        waiting.bell.has_rung.store(true, Ordering::SeqCst);
        let (began, others) = (Instant::now(), S::waiting(queue).await);
        let waits = async {
            sleep(S::SETTLE).await;
            let all = others.map(|others| others + 1);
            eventually(async || S::waiting(queue).await == all).await;
        };
        select! {
            biased;
            output = waiting.output_mut() => {
                // If time passes by itself, it may have been this case that was held up.
                assert!(!S::MANUAL && began.elapsed() >= S::SHORT, "it does not wait");
                waiting.early = Some(output);
            }
            () = waits => {}
        }
        waiting
    }

    /// Waits until it is woken once more, without a poll.
    pub(crate) async fn woken(&mut self) {
        poll_fn(|context| {
            if self.listen(context) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    pub(crate) async fn output(mut self) -> T {
        match self.early.take() {
            Some(output) => output,
            None => self.output_mut().await,
        }
    }

    async fn output_mut(&mut self) -> T {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        while self.listen(context) {
            self.bell.has_rung.store(false, Ordering::SeqCst);
            let waker = Waker::from(Arc::clone(&self.bell));
            let mut context = Context::from_waker(&waker);
            if let Poll::Ready(output) = self.future.as_mut().poll(&mut context) {
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    }

    fn listen(&self, context: &mut Context<'_>) -> bool {
        *self.bell.listener.lock().unwrap() = Some(context.waker().clone());
        self.bell.has_rung.load(Ordering::SeqCst)
    }
}
