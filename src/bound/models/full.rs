//! Models of the linearizable Full while permits move.

use super::*;

/// One permit is free, in the range of the second record; the rest are taken, some of them by the handle of
/// the first record.
fn one_left() -> (Arc<Bank>, Owner, Owner) {
    let bank = Bank::new(8);
    let mut giver = Owner::new(&bank);
    let owner = Owner::with(&bank, 1);
    assert_eq!(giver.take(6), 6);
    (bank, giver, owner)
}

#[test]
fn full_is_not_said_while_a_permit_moves_from_a_range() {
    model(|| {
        let (bank, mut giver, mut owner) = one_left();
        let mover = spawn(move || {
            giver.give(1);
            owner.take(1)
        });
        assert_eq!(bank.take_shared(), 1, "one permit was free all the time");
        let moved = mover.join().unwrap();
        bank.balance(7 + moved);
    });
}

#[test]
fn full_is_not_said_while_a_permit_moves_between_free_counts() {
    model(|| {
        let bank = Bank::new(2);
        let mut left = Owner::new(&bank);
        let mut right = Owner::new(&bank);
        assert_eq!(right.take(2), 2);
        right.give(1);
        let mover = spawn(move || {
            left.give(1);
            right.take(1)
        });
        assert_eq!(bank.take_shared(), 1, "one permit was free all the time");
        let moved = mover.join().unwrap();
        bank.balance(1 + moved);
    });
}

#[test]
fn full_is_not_said_while_a_revoker_takes_the_other_permit() {
    model(|| {
        let (bank, mut giver, owner) = one_left();
        let mover = spawn(move || {
            giver.give(1);
            giver
                .bank
                .took(giver.bank.capacity.revoke(usize::MAX, None))
        });
        assert_eq!(bank.take_shared(), 1, "one permit was free all the time");
        let moved = mover.join().unwrap();
        bank.balance(7 + moved);
        drop(owner);
    });
}

#[test]
fn full_is_not_said_while_a_permit_goes_round_and_round() {
    model(|| {
        let bank = Bank::new(2);
        let mut left = Owner::new(&bank);
        let mut right = Owner::new(&bank);
        assert_eq!(right.take(2), 2);
        right.give(1);
        let mover = spawn(move || {
            let mut moved = 1;
            for round in 0..3 {
                let (from, to) = match round {
                    1 => (&mut left, &mut right),
                    _ => (&mut right, &mut left),
                };
                to.give(moved);
                moved = from.take(1);
            }
            moved
        });
        assert_eq!(bank.take_shared(), 1, "one permit was free all the time");
        let moved = mover.join().unwrap();
        bank.balance(1 + moved);
    });
}
