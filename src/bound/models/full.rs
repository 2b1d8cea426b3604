//! Models of the linearizable Full while permits move.

use super::*;

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
