use super::{Answer, Places, Question, ASK, BEAT};
use std::time::{Duration, Instant};

const TERM: Duration = Duration::from_secs(10);

fn places() -> (Places, Instant) {
    let now = Instant::now();
    (Places::new(TERM, now), now)
}

fn granted(places: &mut Places, question: Question, granted: u32, owed: u32, now: Instant) -> bool {
    places.answered(question, Some(Answer { granted, owed }), now)
}

/// The server grants all that is asked for.
fn serve(places: &mut Places, owed: u32, now: Instant) -> Question {
    let question = places.question(now);
    granted(places, question, question.kept + question.more, owed, now);
    question
}

#[test]
fn a_place_is_asked_for_when_a_start_is_refused() {
    let (mut places, now) = places();
    assert_eq!(places.wait(now), None);
    assert!(!places.take(now));
    assert_eq!(places.wait(now), Some(Duration::ZERO));
    let question = places.question(now);
    assert_eq!(question, Question { kept: 0, more: 1 });
    assert!(!granted(&mut places, question, 0, 0, now));
    assert_eq!(places.wait(now), Some(ASK));
    let question = places.question(now + ASK);
    assert!(
        granted(&mut places, question, 1, 0, now + ASK),
        "waiters are woken"
    );
    assert!(places.take(now + ASK));
    assert!(!places.take(now + ASK));
    assert_eq!(places.question(now + ASK), Question { kept: 1, more: 2 });
}

#[test]
fn a_freed_place_wakes_waiters_only_if_a_start_was_refused() {
    let (mut places, now) = places();
    places.take(now);
    serve(&mut places, 0, now);
    assert!(places.take(now));
    assert!(!places.free());
    assert!(places.take(now));
    assert!(!places.take(now));
    assert!(places.free());
}

#[test]
fn places_that_are_owed_go_back_when_they_are_free() {
    let (mut places, now) = places();
    places.take(now);
    serve(&mut places, 0, now);
    places.take(now);
    places.take(now);
    serve(&mut places, 0, now); // 1 and 2 more
    assert!(places.take(now) && places.take(now));
    let beat = now + BEAT;
    let question = places.question(beat);
    assert_eq!(question.kept, 3);
    granted(&mut places, question, 3, 2, beat);
    assert_eq!(places.wait(beat), Some(BEAT), "all are in use");
    places.free();
    assert_eq!(places.wait(beat), Some(Duration::ZERO));
    assert_eq!(places.question(beat).kept, 2);
    assert!(!places.take(beat));
    places.free();
    assert_eq!(places.question(beat).kept, 1);
    places.free();
    assert!(places.take(beat), "two were owed");
}

#[test]
fn a_place_that_is_released_during_a_question_is_not_counted_twice() {
    let (mut places, now) = places();
    places.take(now);
    serve(&mut places, 0, now);
    places.take(now);
    places.take(now);
    serve(&mut places, 0, now);
    assert!(places.take(now) && places.take(now));
    let question = places.question(now);
    granted(&mut places, question, 3, 1, now);
    let question = places.question(now);
    places.free();
    granted(&mut places, question, 3, 1, now);
    places.free();
    assert_eq!(places.question(now).kept, 2, "one was owed, not two");
}

#[test]
fn places_that_were_not_used_go_back_at_the_next_beat() {
    let (mut places, now) = places();
    places.take(now);
    serve(&mut places, 0, now);
    assert!(places.take(now));
    assert_eq!(places.wait(now), Some(BEAT));
    places.free();
    assert_eq!(serve(&mut places, 0, now + BEAT).kept, 1, "used since");
    assert_eq!(serve(&mut places, 0, now + 2 * BEAT).kept, 0);
    assert_eq!(places.wait(now), None);
}

#[test]
fn nothing_starts_after_the_term_and_what_is_in_flight_keeps_its_place() {
    let (mut places, now) = places();
    places.take(now);
    serve(&mut places, 0, now);
    places.take(now);
    places.take(now);
    serve(&mut places, 0, now);
    assert!(places.take(now + TERM / 2));
    assert!(!places.take(now + TERM));
    let question = places.question(now + TERM);
    assert_eq!(
        question.kept, 2,
        "one in flight from the first, one from the last start"
    );
    assert!(!places.answered(question, None, now + TERM));
    assert_eq!(places.wait(now + TERM), Some(BEAT));
}
