//! Items that another version of the program cannot decode, and what errors name.

use super::{directory, open, options};
use requeue_durable::{
    Cause, Codec, CodecError, DurableQueue, OnUndecodable, PopError, PushError, Store, StoreError,
};
use std::error::Error;
use std::fs;
use std::sync::mpsc::channel;

/// Numbers, of which some cannot be encoded or decoded.
struct But(&'static [u8]);

impl Codec<u8> for But {
    fn encode(&self, item: &u8, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        bytes.push(self.decode(&[*item])?);
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<u8, CodecError> {
        if self.0.contains(&bytes[0]) {
            return Err(CodecError::new("not this one"));
        }
        Ok(bytes[0])
    }
}

fn queue(
    store: &Store,
    but: &'static [u8],
    what: OnUndecodable,
) -> Result<DurableQueue<u8>, StoreError> {
    let builder = store.builder("numbers").codec(But(but));
    builder.on_undecodable(what).build()
}

#[test]
fn an_item_that_cannot_be_decoded_is_a_dead_letter_until_it_can() {
    let directory = directory();
    let store = open(&directory);
    let numbers = queue(&store, &[], OnUndecodable::Bury).unwrap();
    numbers.push_batch(1..=4).unwrap();
    drop(numbers);
    for _ in 0..2 {
        let numbers = queue(&store, &[2, 3], OnUndecodable::Bury).unwrap();
        assert_eq!(numbers.len(), 2);
        let letters = numbers.dead_letters();
        assert_eq!(letters.len(), 2);
        assert!(letters.all().unwrap().is_empty());
        assert!(letters.oldest().unwrap().is_none());
        let undecodable = letters.undecodable().unwrap();
        let bytes: Vec<_> = undecodable.iter().map(|letter| &letter.bytes[..]).collect();
        assert_eq!(bytes, [[2], [3]]);
        let error = undecodable[0].error.to_string();
        assert!(
            error.ends_with("of queue \"numbers\": not this one"),
            "{error}"
        );
        assert!(error.starts_with("item "), "{error}");
        let refused = letters.requeue(undecodable[0].id());
        assert!(matches!(
            refused,
            Err(PushError::Store(StoreError::Codec(_)))
        ));
        drop((letters, numbers));
        store.flush().unwrap();
    }
    // A version that can decode one of them.
    let numbers = queue(&store, &[3], OnUndecodable::Bury).unwrap();
    let letters = numbers.dead_letters();
    let letter = letters.oldest().unwrap().unwrap();
    assert_eq!((letter.item, letter.reason), (2, Cause::Undecodable));
    assert!(letter.error.as_ref().unwrap().ends_with("not this one"));
    assert!(letters.requeue(letter.id()).unwrap());
    let other = letters.undecodable().unwrap().remove(0).id();
    assert!(letters.remove(other).is_err());
    assert!(letters.discard(other).unwrap());
    assert!(!letters.discard(other).unwrap());
    drop((letters, numbers));
    let numbers = queue(&store, &[], OnUndecodable::Bury).unwrap();
    assert!(numbers.dead_letters().is_empty());
    let mut left = numbers.pop_batch(9).unwrap();
    left.sort_unstable();
    assert_eq!(left, [1, 2, 4]);
}

#[test]
fn an_item_that_cannot_be_decoded_is_refused_or_discarded() {
    let directory = directory();
    let store = open(&directory);
    let numbers = queue(&store, &[], OnUndecodable::Bury).unwrap();
    numbers.push_batch(1..=3).unwrap();
    drop(numbers);
    let refused = queue(&store, &[2], OnUndecodable::Refuse);
    let Err(StoreError::Codec(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        error.to_string().contains("of queue \"numbers\""),
        "{error}"
    );
    // Nothing was changed.
    let numbers = queue(&store, &[], OnUndecodable::Refuse).unwrap();
    assert_eq!(numbers.len(), 3);
    drop(numbers);
    drop(queue(&store, &[2], OnUndecodable::Discard).unwrap());
    let numbers = queue(&store, &[], OnUndecodable::Refuse).unwrap();
    assert!(numbers.dead_letters().is_empty());
    assert_eq!(numbers.pop_batch(9).unwrap(), [1, 3]);
}

#[test]
fn an_error_has_its_cause_and_names_its_place() {
    let files = directory();
    let store = open(&files);
    let numbers = queue(&store, &[7], OnUndecodable::Bury).unwrap();
    let error = numbers.push(7).unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert_eq!(cause, "queue \"numbers\": not this one");
    let error: PushError<u8> = StoreError::DiskFull.into();
    assert_eq!(
        error.source().unwrap().to_string(),
        StoreError::DiskFull.to_string()
    );
    let error: PopError = StoreError::Expired.into();
    assert_eq!(
        error.source().unwrap().to_string(),
        StoreError::Expired.to_string()
    );
    let other = directory();
    fs::create_dir(other.path().join("lock")).unwrap();
    fs::write(other.path().join("version"), "requeue-durable, version 1").unwrap();
    let error = options().open(other.path()).unwrap_err();
    let lock = other.path().join("lock").display().to_string();
    assert!(error.to_string().contains(&lock), "{error}");
}

#[test]
fn a_limit_of_dead_letters_removes_only_those_that_somebody_gets() {
    let directory = directory();
    let store = open(&directory);
    let numbers = queue(&store, &[], OnUndecodable::Bury).unwrap();
    numbers.push_batch(1..=9).unwrap();
    drop(numbers);
    let (send, removed) = channel();
    let limited = store
        .builder("numbers")
        .codec(But(&[2, 3, 4, 5]))
        .max_dead_letters(1, move |letter| send.send(letter.item).unwrap());
    let numbers = limited.build().unwrap();
    let letters = numbers.dead_letters();
    assert_eq!(letters.len(), 4);
    let mut tx = numbers.begin_owned();
    let failed: Vec<_> = tx.pop_batch(3).unwrap().map(|item| *item).collect();
    tx.fail_all("no good").unwrap();
    tx.commit().unwrap();
    let expected = (failed[0], failed[1]);
    assert_eq!(
        (removed.recv(), removed.recv()),
        (Ok(expected.0), Ok(expected.1))
    );
    assert_eq!(letters.oldest().unwrap().unwrap().item, failed[2]);
    let undecodable = letters.undecodable().unwrap();
    let bytes: Vec<_> = undecodable.iter().map(|letter| letter.bytes[0]).collect();
    assert_eq!(bytes, [2, 3, 4, 5]);
    // The others are requeued.
    assert_eq!(letters.requeue_all().unwrap(), 1);
    assert!(letters.discard(undecodable[3].id()).unwrap());
    assert_eq!((letters.len(), numbers.len()), (3, 3));
}
