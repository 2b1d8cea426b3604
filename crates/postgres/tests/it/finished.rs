//! Items that were done and are kept.

use crate::{build, until, Db, LONG};
use requeue_postgres::{Error, PgQueue, Postgres, Ticket};

fn queue(db: &Postgres, leased: bool) -> PgQueue<u32> {
    build(db.builder("q").keep_finished(LONG), leased)
}

#[tokio::test]
async fn what_is_done_is_kept_with_its_result() {
    for leased in [false, true] {
        let db = Db::new().await;
        let queue = queue(&db, leased);
        let tickets = queue.push_batch([6, 7, 8]).await.unwrap();
        let tasks = queue.workers().tasks(1).run_async(|item, tx| async move {
            match *item {
                8 => tx.snooze(LONG).await, // is not done
                6 => Ok(()),
                _ if item.attempts() == 1 => Err(Error::Ended),
                number => tx.set_result(&(number, "seven")).await,
            }
        });
        until(|| async { queue.finished(tickets[1]).await.unwrap().is_some() }).await;
        tasks.stop().await;
        let all = queue.finished_after(Ticket(0), 9).await.unwrap();
        let found: Vec<_> = all.iter().map(|it| it.ticket).collect();
        assert_eq!(found, tickets[..2]);
        let [six, seven] = &*all else { unreachable!() };
        assert_eq!(six.result::<u32>().unwrap(), None);
        assert!(matches!(seven.item, Ok(7)));
        let result = seven.result::<(u32, String)>().unwrap().unwrap();
        assert_eq!((result.0, &*result.1), (7, "seven"));
        assert!(seven.result::<bool>().is_err());
        assert!(seven.finished_at >= seven.pushed_at);
        assert_eq!((six.attempts, seven.attempts), (1, 2));
        assert!(queue.finished(tickets[2]).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_aborted_transaction_keeps_nothing() {
    let db = Db::new().await;
    let queue = queue(&db, true);
    let ticket = queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let item = tx.pop(&queue).await.unwrap().unwrap();
    tx.set_result(&item, &1).unwrap();
    db.execute("delete from @.leased").await;
    tx.commit().await.unwrap_err(); // its lease has expired
    assert!(queue.finished(ticket).await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_kept_long_enough_is_not_found_and_is_removed() {
    let db = Db::new().await;
    let queue = queue(&db, true);
    let ticket = queue.push(1).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.pop(&queue).await.unwrap().unwrap();
    tx.commit().await.unwrap();
    assert!(queue.finished(ticket).await.unwrap().is_some());
    db.execute("update @.finished set until = now()").await;
    assert!(queue.finished(ticket).await.unwrap().is_none());
    let other = db.other().await; // its first look sweeps
    let theirs: PgQueue<u32> = other.builder("q").leased(LONG).build();
    let mut tx = other.begin().await.unwrap();
    assert!(tx.pop(&theirs).await.unwrap().is_none());
    until(|| async { db.number("select count(*) from @.finished").await == 0 }).await;
}
