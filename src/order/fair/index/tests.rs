//! The table against a plain list, with hashes that collide.

use super::{Index, LEAST};

/// A sequence of numbers that look random.
fn numbers() -> impl FnMut(u32) -> u32 {
    let mut state = 1_u64;
    move |limit| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(state >> 33).unwrap() % limit
    }
}

fn found(index: &Index, hash: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    index.find(hash, |number| {
        numbers.push(number);
        false
    });
    numbers.sort_unstable();
    numbers
}

/// Some of the hashes lie at the end of the table, and run over into its beginning.
#[test]
fn what_was_added_is_found_until_it_is_removed() {
    for hashes in [1, 3, 40, 100_000] {
        let mut number = numbers();
        let mut index = Index::new();
        let mut plain: Vec<(u32, u32)> = Vec::new();
        for step in 0..20_000 {
            let growing = step / 100 % 2 == 0;
            let hash = number(hashes).wrapping_sub(3);
            if number(10) < if growing { 7 } else { 3 } {
                index.add(hash, step);
                plain.push((hash, step));
            } else if !plain.is_empty() {
                let at = number(u32::try_from(plain.len()).unwrap());
                let (hash, number) = plain.swap_remove(at as usize);
                index.remove(hash, number);
            }
            let same = plain.iter().filter(|pair| pair.0 == hash);
            let mut same: Vec<_> = same.map(|pair| pair.1).collect();
            same.sort_unstable();
            assert_eq!(found(&index, hash), same);
        }
        for (hash, number) in plain {
            assert_eq!(index.find(hash, |other| other == number), Some(number));
        }
    }
}

#[test]
fn it_grows_and_shrinks_with_what_it_has() {
    let mut index = Index::new();
    for number in 0..100_000 {
        index.add(number * 7, number);
        assert!(index.room() >= 2 * index.len && index.room() <= LEAST.max(4 * index.len));
    }
    for number in 0..100_000 {
        index.remove(number * 7, number);
        assert!(index.room() <= LEAST.max(8 * index.len));
    }
    assert_eq!((index.len, index.room()), (0, LEAST));
}
