//! Models of a free count: its owner against collectors.

use super::*;

#[test]
fn two_collectors_share_what_was_returned() {
    model(|| {
        let bank = Bank::new(3);
        let mut giver = PermitOwner::with(&bank, 0);
        assert_eq!(giver.take(2), 2);
        giver.give(1);
        let collector = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared(1)
        });
        let giver = spawn(move || giver.give(1));
        let mine = bank.take_shared(1);
        let theirs = collector.join().unwrap();
        giver.join().unwrap();
        bank.balance(1 + mine + theirs);
    });
}

#[test]
fn a_giver_moves_to_the_pool_what_another_collects() {
    model(|| {
        let bank = Bank::new(3);
        let mut giver = PermitOwner::with(&bank, 0);
        assert_eq!(giver.take(2), 2);
        let collector = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared(2)
        });
        giver.give(1);
        giver.give(2);
        let got = collector.join().unwrap();
        bank.balance(got);
    });
}
