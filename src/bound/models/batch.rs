//! Models of batches, which take all permits or none.

use super::*;

#[test]
fn one_of_two_batches_gets_all() {
    model(|| {
        let bank = Bank::new(2);
        let mut left = Owner::new(&bank);
        let mut right = Owner::new(&bank);
        assert_eq!(right.take(2), 2);
        left.give(1);
        right.give(1);
        let other = spawn(move || left.take_all(2));
        let got = right.take_all(2);
        assert_eq!(got + other.join().unwrap(), 2);
        bank.balance(2);
    });
}

#[test]
fn a_batch_that_fails_is_in_the_way_of_nobody() {
    model_of(3, || {
        let bank = Bank::new(3);
        let mut long = Owner::new(&bank);
        let mut short = Owner::new(&bank);
        let long = spawn(move || long.take_all(3));
        let one = bank.take_shared();
        let two = short.take_all(2);
        let three = long.join().unwrap();
        assert_eq!(one + two + three, 3, "there were enough permits for these");
        bank.balance(3);
    });
}

/// As by a call without a handle. What a batch in vain has moved is reported.
#[test]
fn a_batch_by_an_owner_that_leaves_at_once() {
    model(|| {
        let bank = Bank::new(2);
        let mut giver = Owner::new(&bank);
        assert_eq!(giver.take(2), 2);
        giver.give(1);
        let batch = spawn({
            let bank = Arc::clone(&bank);
            move || {
                let mut owner = Owner::new(&bank);
                let got = owner.take_all(2);
                owner.leave();
                got
            }
        });
        giver.give(1);
        let one = bank.take_shared();
        let got = batch.join().unwrap();
        assert_eq!(one + got, if got == 0 { 1 } else { 2 });
        bank.balance(one + got);
    });
}
