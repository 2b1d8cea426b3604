//! Items of every size and alignment pass in order and are dropped once.

use std::cell::Cell;

use crate::common::drain;
use requeue::Queue;

thread_local! {
    /// The drops of this thread; each test has its own thread.
    static DROPS: Cell<usize> = const { Cell::new(0) };
}

/// An item that counts its drops, with the size and alignment of its body.
struct Counted<B>(B);

impl<B> Drop for Counted<B> {
    fn drop(&mut self) {
        DROPS.set(DROPS.get() + 1);
    }
}

/// The content of an item: it stores its number, as far as it has room.
trait Body {
    fn numbered(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Body for () {
    fn numbered(_: u64) {}
    fn number(&self) -> u64 {
        0
    }
}

impl Body for u8 {
    fn numbered(number: u64) -> u8 {
        number.to_le_bytes()[0]
    }
    fn number(&self) -> u64 {
        u64::from(*self)
    }
}

impl Body for [u64; 512] {
    fn numbered(number: u64) -> Self {
        [number; 512]
    }
    fn number(&self) -> u64 {
        assert!(self.iter().all(|word| *word == self[0]));
        self[0]
    }
}

#[repr(align(256))]
struct Wide(u64);

impl Body for Wide {
    fn numbered(number: u64) -> Self {
        Wide(number)
    }
    fn number(&self) -> u64 {
        self.0
    }
}

fn assert_aligned<B>(item: &Counted<B>) {
    let address: *const Counted<B> = item;
    assert_eq!(address as usize % align_of::<Counted<B>>(), 0);
}

/// Pushes and pops in all ways, and leaves some items for the drop of the queue.
fn pass<B: Body>() {
    let item = |number| Counted(B::numbered(number));
    let check = |item: &Counted<B>, number| {
        assert_aligned(item);
        assert_eq!(item.0.number(), B::numbered(number).number());
    };
    let queue = Queue::unbounded();
    let mut handle = queue.handle();
    (0..1_000).for_each(|number| handle.push(item(number)).unwrap());
    let pushed = handle.push_batch((1_000..2_000).map(item));
    assert_eq!(pushed.ok(), Some(1_000));
    let tx = handle.begin();
    (2_000..3_000).for_each(|number| tx.push(item(number)).unwrap());
    tx.commit();

    for _ in 0..2 {
        let tx = handle.begin();
        tx.push(item(0)).unwrap();
        for number in 0..700 {
            check(&tx.pop().unwrap(), number);
        }
        tx.abort();
    }
    assert_eq!(DROPS.replace(0), 2);

    let tx = handle.begin();
    assert_eq!(tx.pop_batch(700).len(), 700);
    while tx.held() < 1_500 {
        tx.pop().unwrap();
    }
    let taken = tx.commit().zip(0..);
    taken.for_each(|(item, number)| check(&item, number));
    assert_eq!(DROPS.get(), 1_500);
    check(&handle.pop().unwrap(), 1_500);
    check(&queue.pop().unwrap(), 1_501);
    assert_eq!(queue.len(), 1_498);
    assert_eq!(DROPS.get(), 1_502);
    drop((handle, queue));
    assert_eq!(DROPS.get(), 3_000);
}

#[test]
fn zero_sized() {
    const { assert!(size_of::<Counted<()>>() == 0) };
    pass::<()>();
}

#[test]
fn one_byte() {
    const { assert!(size_of::<Counted<u8>>() == 1) };
    pass::<u8>();
}

#[test]
fn four_kibibytes() {
    const { assert!(size_of::<Counted<[u64; 512]>>() == 4096) };
    pass::<[u64; 512]>();
}

#[test]
fn over_aligned() {
    const { assert!(align_of::<Counted<Wide>>() == 256) };
    pass::<Wide>();
}

#[test]
fn without_a_handle() {
    let queue = Queue::unbounded();
    (0..3_000).for_each(|number| queue.push(Counted(Wide(number))).unwrap());
    let items = drain(&queue);
    items.iter().for_each(assert_aligned);
    assert!(items.iter().map(|item| item.0 .0).eq(0..3_000));
    assert_eq!(DROPS.get(), 0);
}
