//! Models of records that change owners.

use super::*;

#[test]
fn leaving_loses_no_permits() {
    model(|| {
        let bank = Bank::new(4);
        let mut owner = PermitOwner::with(&bank, 1);
        let leaver = spawn(move || {
            owner.give(1);
            owner.leave()
        });
        let got = bank.take_shared(3);
        leaver.join().unwrap();
        assert!(got >= 1, "two others were in the pool");
        bank.balance(got);
    });
}

#[test]
fn a_record_changes_hands_while_it_is_robbed() {
    model(|| {
        let bank = Bank::new(4);
        let owner = PermitOwner::with(&bank, 1);
        assert_eq!(bank.take_shared(2), 2);
        let thief = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared(1)
        });
        owner.leave();
        let mut next = PermitOwner::new(&bank);
        let kept = next.take(1);
        next.give(kept);
        let again = next.take(1);
        let stolen = thief.join().unwrap();
        bank.balance(3 + again + stolen);
    });
}

#[test]
fn a_record_is_handed_on_to_another_thread() {
    model(|| {
        let bank = Bank::new(4);
        let mut owner = PermitOwner::with(&bank, 1);
        let leaver = spawn(move || {
            owner.give(1);
            owner.leave()
        });
        let mut next = PermitOwner::new(&bank);
        let mut got = next.take(1);
        got += next.take(1);
        next.give(got);
        leaver.join().unwrap();
        bank.balance(0);
    });
}

#[test]
fn a_record_is_leased_again_while_it_is_retired() {
    model(|| {
        let bank = Bank::new(4);
        let staying = [(); 2].map(|()| PermitOwner::new(&bank));
        let mut leaver = PermitOwner::new(&bank);
        assert_eq!(leaver.take(1), 1);
        assert_eq!(bank.take_shared(4), 3);
        leaver.give(1);
        leaver.leave();
        assert_eq!(bank.take_shared(1), 1);
        let search = spawn({
            let bank = Arc::clone(&bank);
            move || bank.take_shared(1)
        });
        let mut next = PermitOwner::new(&bank);
        next.give(1);
        let found = search.join().unwrap();
        bank.balance(3 + found);
        drop((next, staying));
    });
}
