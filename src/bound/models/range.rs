//! Models of a range: its owner against revokers.

use super::*;

#[test]
fn an_owner_and_a_revoker_do_not_take_the_same() {
    model(|| {
        let bank = Bank::new(4);
        let mut owner = Owner::with(&bank, 1);
        assert_eq!(bank.take_many(2), 2);
        let owner = spawn(move || owner.take(1));
        let revoked = bank.take_shared();
        let kept = owner.join().unwrap();
        assert_eq!(kept + revoked, 1, "one was free, and one of them takes it");
        bank.balance(4);
    });
}

#[test]
fn an_owner_takes_many_against_a_revoker() {
    model(|| {
        let bank = Bank::new(8);
        let mut owner = Owner::with(&bank, 3);
        assert_eq!(bank.take_many(4), 4);
        let owner = spawn(move || owner.take(1) + owner.take(1));
        let revoked = bank.take_shared();
        let kept = owner.join().unwrap();
        assert!(
            kept + revoked > 0,
            "a caller with all permits in hand uses one"
        );
        bank.balance(5 + kept + revoked);
    });
}

#[test]
fn two_revokers_do_not_take_the_same() {
    model(|| {
        let bank = Bank::new(4);
        let owner = Owner::with(&bank, 1);
        assert_eq!(bank.take_many(2), 2);
        let revoker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.took(bank.capacity.revoke(usize::MAX, None))
        });
        let revoked = bank.took(bank.capacity.revoke(usize::MAX, None));
        let revoked = revoked + revoker.join().unwrap();
        assert!(revoked == 1, "one was free");
        bank.balance(4);
        drop(owner);
    });
}

#[test]
fn two_revokers_and_an_owner_do_not_take_the_same() {
    model(|| {
        let bank = Bank::new(8);
        let mut owner = Owner::with(&bank, 3);
        assert_eq!(bank.take_many(4), 4);
        let revoker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.took(bank.capacity.revoke(usize::MAX, None))
        });
        let owner = spawn(move || owner.take(1));
        let revoked = bank.took(bank.capacity.revoke(usize::MAX, None)) + revoker.join().unwrap();
        let kept = owner.join().unwrap();
        bank.balance(5 + kept + revoked);
    });
}

#[test]
fn a_late_revoker_takes_nothing_of_the_next_range() {
    model(|| {
        let bank = Bank::new(4);
        let mut owner = Owner::with(&bank, 1);
        let revoker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_many(3)
        });
        let kept = owner.take(1);
        owner.give(1 + kept);
        let again = owner.take(1);
        let more = owner.take(1);
        let revoked = revoker.join().unwrap();
        bank.balance(again + more + revoked);
    });
}

#[test]
fn a_revoker_sees_where_a_new_range_begins() {
    model(|| {
        let bank = Bank::new(8);
        let mut owner = Owner::new(&bank);
        let mut revoker = Owner::new(&bank);
        let revoker = spawn(move || revoker.take(8));
        let kept = owner.take(1);
        let revoked = revoker.join().unwrap();
        bank.balance(kept + revoked);
    });
}
