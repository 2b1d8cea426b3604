//! Models of a free count: its owner against takers.

use super::*;

#[test]
fn two_takers_share_what_was_put_back() {
    model(|| {
        let bank = Bank::new(3);
        let mut giver = Owner::new(&bank);
        assert_eq!(giver.take(3), 3);
        giver.give(1);
        let taker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared()
        });
        let giver = spawn(move || giver.give(1));
        let mine = bank.take_shared();
        let theirs = taker.join().unwrap();
        giver.join().unwrap();
        bank.balance(1 + mine + theirs);
    });
}

#[test]
fn an_owner_takes_back_what_another_takes() {
    model(|| {
        let bank = Bank::new(2);
        let mut owner = Owner::new(&bank);
        assert_eq!(owner.take(2), 2);
        let taker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_many(2)
        });
        owner.give(1);
        let back = owner.take(1);
        owner.give(1);
        let again = owner.take(1);
        let got = taker.join().unwrap();
        bank.balance(got + back + again);
    });
}

#[test]
fn a_taker_leaves_a_source_that_others_have_emptied() {
    model(|| {
        let bank = Bank::new(3);
        let mut giver = Owner::new(&bank);
        assert_eq!(giver.take(3), 3);
        giver.give(2);
        let mut taker = Owner::new(&bank);
        assert_eq!(taker.take(1), 1);
        let other = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared()
        });
        let giver = spawn(move || giver.give(1));
        let mine = taker.take(1);
        let theirs = other.join().unwrap();
        giver.join().unwrap();
        assert!(mine + theirs > 0, "one was free all the time");
        bank.balance(1 + mine + theirs);
    });
}

#[test]
fn a_giver_moves_to_the_pool_what_another_takes() {
    model(|| {
        let bank = Bank::new(3);
        let mut giver = Owner::new(&bank);
        assert_eq!(giver.take(2), 2);
        let taker = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_many(2)
        });
        giver.give_tidily(1);
        giver.give_tidily(1);
        let got = taker.join().unwrap();
        bank.balance(got);
    });
}
