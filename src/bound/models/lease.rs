//! Models of records that change owners.

use super::*;

#[test]
fn leaving_loses_no_permits() {
    model(|| {
        let bank = Bank::new(4);
        let mut owner = Owner::new(&bank);
        assert_eq!(owner.take(2), 2);
        let leaver = spawn(move || {
            owner.give(1);
            owner.leave();
        });
        let got = bank.take_many(3);
        leaver.join().unwrap();
        assert!(got >= 2, "two were in the pool");
        bank.balance(1 + got);
    });
}

#[test]
fn a_record_changes_hands_while_others_take_from_it() {
    model(|| {
        let bank = Bank::new(3);
        let mut owner = Owner::new(&bank);
        assert_eq!(owner.take(3), 3);
        owner.give(1);
        let taker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared()
        });
        owner.leave();
        let mut next = Owner::new(&bank);
        next.give(1);
        let again = next.take(1);
        let taken = taker.join().unwrap();
        bank.balance(1 + again + taken);
    });
}

#[test]
fn the_range_of_a_record_goes_on_while_it_is_robbed() {
    model(|| {
        let bank = Bank::new(4);
        let owner = Owner::with(&bank, 1);
        assert_eq!(bank.take_many(2), 2);
        let revoker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared()
        });
        owner.leave();
        let mut next = Owner::new(&bank);
        let kept = next.take(1);
        next.give(kept);
        let again = next.take(1);
        let revoked = revoker.join().unwrap();
        bank.balance(3 + again + revoked);
    });
}

#[test]
fn a_record_is_handed_on_to_another_thread() {
    model(|| {
        let bank = Bank::new(2);
        let mut owner = Owner::new(&bank);
        assert_eq!(owner.take(2), 2);
        let leaver = spawn(move || {
            owner.give(1);
            owner.leave();
        });
        let mut next = Owner::new(&bank);
        let mut got = next.take(1);
        got += next.take(1);
        next.give(got);
        leaver.join().unwrap();
        bank.balance(1);
    });
}

#[test]
fn a_record_is_acquired_again_while_it_is_retired() {
    model_of(1, || {
        // two take a minute
        let bank = Bank::new(4);
        let staying = [(); 2].map(|()| Owner::new(&bank));
        let mut leaver = Owner::new(&bank);
        assert_eq!(leaver.take(4), 4);
        leaver.give(1);
        leaver.leave();
        assert_eq!(bank.take_shared(), 1);
        let search = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared()
        });
        let mut next = Owner::new(&bank);
        next.give(1);
        let found = search.join().unwrap();
        bank.balance(3 + found);
        drop((next, staying));
    });
}
