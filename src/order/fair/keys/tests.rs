//! Tests of the registry of keys.

use super::{Hash, Keys, Registry, Rules, SHARDS, UNLIMITED};
use crate::order::fair::table::LEAST;
use std::cell::Cell;
use std::hash::Hasher;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

/// A registry whose items are their own keys.
fn keys<K: Clone + 'static>(limit: u32) -> Keys<K, K> {
    Keys::new(Rules {
        by: Arc::new(K::clone),
        weigh: None,
        limit,
        most_held: UNLIMITED,
    })
}

fn weighed(weigh: impl Fn(&u32) -> u32 + Send + Sync + 'static) -> Keys<u32, u32> {
    let mut keys = keys(UNLIMITED);
    keys.rules.weigh = Some(Arc::new(weigh));
    keys
}

/// The number of stored keys.
fn known<K, T>(keys: &Keys<K, T>) -> usize {
    (0..SHARDS).map(|shard| keys.table(shard).len()).sum()
}

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// A key with a constant hash that counts the drops of its clones, and panics in a configurable call.
struct Odd {
    id: u32,
    drops: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    None,
    Hash,
    Eq,
    Drop,
}

thread_local! {
    static BOMB: Cell<Call> = const { Cell::new(Call::None) };
}

/// Panics once if this is the configured call.
fn may_panic(call: Call) {
    if BOMB.with(Cell::get) == call {
        BOMB.with(|bomb| bomb.set(Call::None));
        panic!("configured");
    }
}

impl Odd {
    fn new(id: u32) -> Self {
        let drops = Arc::default();
        Self { id, drops }
    }

    fn drops(&self) -> usize {
        self.drops.load(Ordering::Relaxed)
    }
}

impl Clone for Odd {
    fn clone(&self) -> Self {
        let drops = Arc::clone(&self.drops);
        Self { id: self.id, drops }
    }
}

impl PartialEq for Odd {
    fn eq(&self, other: &Self) -> bool {
        may_panic(Call::Eq);
        self.id == other.id
    }
}

impl Eq for Odd {}

impl Hash for Odd {
    fn hash<H: Hasher>(&self, _: &mut H) {
        may_panic(Call::Hash);
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        may_panic(Call::Drop);
    }
}

#[test]
fn items_with_the_same_key_have_the_same_number_while_one_is_alive() {
    let keys = keys(UNLIMITED);
    let [first, second] = [1, 1].map(|item| keys.register(&item, ()).unwrap());
    let other = keys.register(&2, ()).unwrap();
    assert_eq!(first, second);
    assert_ne!(first, other);
    keys.unregister(first, 1);
    assert_eq!(keys.register(&1, ()), Some(first));
    assert_eq!(keys.key(other.key).as_deref(), Some(&2));
    assert_eq!(known(&keys), 2);
}

#[test]
fn a_key_is_dropped_with_its_last_item() {
    let keys = keys(UNLIMITED);
    let key = Odd::new(1);
    let metas = [1, 2, 3].map(|_| keys.register(&key, ()).unwrap());
    let before = key.drops();
    for meta in metas {
        assert_eq!(key.drops(), before);
        keys.unregister(meta, 1);
    }
    assert_eq!((key.drops(), known(&keys)), (before + 1, 0));
}

#[test]
fn no_more_items_of_a_key_than_the_limit() {
    let keys = keys(2);
    let metas = [1, 1].map(|item| keys.register(&item, ()).unwrap());
    assert_eq!(
        (keys.register(&1, ()), keys.key_at_limit(&1)),
        (None, Some(1))
    );
    assert_eq!(keys.key_at_limit(&2), None);
    keys.register(&2, ()).unwrap();
    assert_eq!(keys.key_at_limit(&2), None);
    keys.unregister(metas[0], 1);
    assert_eq!(keys.key_at_limit(&1), None);
    assert!(keys.register(&1, ()).is_some());
    assert!(keys.register(&1, ()).is_none());
}

#[test]
fn the_weight_is_asked_for_once_for_each_new_key() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let keys = weighed(move |key| {
        count.fetch_add(1, Ordering::Relaxed);
        *key
    });
    let metas = [3, 3, 0].map(|item| keys.register(&item, ()).unwrap());
    let weights = metas.map(|meta| meta.weight);
    assert_eq!((weights, asked.load(Ordering::Relaxed)), ([3, 3, 1], 2));
    keys.unregister(metas[0], 1);
    keys.unregister(metas[1], 1);
    assert!(keys.register(&3, ()).is_some());
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[test]
fn a_weight_may_use_the_queue() {
    let same = Arc::new(OnceLock::<Weak<Keys<u32, u32>>>::new());
    let used = Arc::clone(&same);
    let keys = Arc::new(weighed(move |key| {
        if let Some(next) = key.checked_sub(1) {
            let keys = used.get().unwrap().upgrade().unwrap();
            keys.register(&next, ()).unwrap();
        }
        *key
    }));
    same.set(Arc::downgrade(&keys)).unwrap();
    keys.register(&9, ()).unwrap();
    assert_eq!(known(&keys), 10);
}

/// The weight function pushes an item with the key, as another thread might do.
#[test]
fn a_key_that_becomes_known_while_it_is_weighed_is_one_key() {
    let same = Arc::new(OnceLock::<Weak<Keys<u32, u32>>>::new());
    let used = Arc::clone(&same);
    let depth = AtomicUsize::new(0);
    let keys = Arc::new(weighed(move |key| {
        if depth.fetch_add(1, Ordering::Relaxed) == 0 {
            let keys = used.get().unwrap().upgrade().unwrap();
            keys.register(key, ()).unwrap();
        }
        1
    }));
    same.set(Arc::downgrade(&keys)).unwrap();
    let meta = keys.register(&5, ()).unwrap();
    assert_eq!(keys.register(&5, ()), Some(meta));
    assert_eq!(known(&keys), 1);
}

#[test]
fn a_weight_that_panics_changes_nothing() {
    let keys = weighed(|key| if *key == 1 { panic!("no weight") } else { 1 });
    assert!(panics(|| keys.register(&1, ())));
    assert_eq!(known(&keys), 0);
    assert!(keys.register(&2, ()).is_some());
}

#[test]
fn keys_with_the_same_hash_are_distinguished() {
    let keys = keys(UNLIMITED);
    let odd: Vec<_> = (0..20).map(Odd::new).collect();
    let metas: Vec<_> = odd
        .iter()
        .map(|key| keys.register(key, ()).unwrap())
        .collect();
    for at in [0, 19, 7, 8, 18, 1] {
        assert_eq!(odd[at].drops(), 0);
        keys.unregister(metas[at], 1);
        assert_eq!(odd[at].drops(), 1);
    }
    let left = (2..18).filter(|at| ![7, 8].contains(at));
    for at in left.clone() {
        assert_eq!(keys.register(&odd[at], ()), Some(metas[at]));
        keys.unregister(metas[at], 1);
    }
    left.for_each(|at| keys.unregister(metas[at], 1));
    assert_eq!(known(&keys), 0);
}

#[test]
fn user_code_that_panics_leaves_the_keys_consistent() {
    let keys = keys(2);
    let key = Odd::new(1);
    let meta = keys.register(&key, ()).unwrap();
    for call in [Call::Hash, Call::Eq, Call::Drop] {
        BOMB.with(|bomb| bomb.set(call));
        assert!(panics(|| keys.register(&key, ())));
        // The key counts one item.
        assert_eq!(keys.register(&key, ()), Some(meta));
        assert_eq!(keys.register(&key, ()), None);
        keys.unregister(meta, 1);
    }
    BOMB.with(|bomb| bomb.set(Call::Drop));
    keys.unregister(meta, 1);
    assert!(BOMB.with(Cell::get) == Call::None);
    assert_eq!(known(&keys), 0);
}

#[test]
fn a_shared_key_is_the_same_key_and_outlives_its_items() {
    let keys = keys(UNLIMITED);
    let key = Odd::new(1);
    let meta = keys.register(&key, ()).unwrap();
    let seen = [1, 2].map(|_| keys.key(meta.key).unwrap());
    assert!(Arc::ptr_eq(&seen[0], &seen[1]));
    assert_eq!(keys.register(&key, ()), Some(meta));
    let before = key.drops();
    keys.unregister(meta, 1);
    keys.unregister(meta, 1);
    assert_eq!((key.drops(), known(&keys)), (before, 0));
    assert!(keys.key(meta.key).is_none());
    drop(seen);
    assert_eq!(key.drops(), before + 1);
}

/// A key whose destructor uses the queue.
#[derive(Clone)]
struct Nested(u32, Weak<Keys<Nested, Nested>>);

impl PartialEq for Nested {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Nested {}

impl Hash for Nested {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        if let (Some(next), Some(keys)) = (self.0.checked_sub(1), self.1.upgrade()) {
            let meta = keys.register(&Nested(next, Weak::new()), ()).unwrap();
            keys.unregister(meta, 1);
        }
    }
}

#[test]
fn the_destructor_of_a_key_may_use_the_queue() {
    let keys = Arc::new(keys::<Nested>(UNLIMITED));
    for id in 1..100 {
        let meta = keys
            .register(&Nested(id, Arc::downgrade(&keys)), ())
            .unwrap();
        keys.unregister(meta, 1);
    }
    assert_eq!(known(&keys), 0);
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for Miri")]
fn a_million_keys_leave_no_memory() {
    let keys = keys(UNLIMITED);
    let metas: Vec<_> = (0..1_000_000_u32)
        .map(|item| keys.register(&item, ()).unwrap())
        .collect();
    for (item, meta) in (0..).zip(&metas) {
        assert_eq!(keys.key(meta.key).as_deref(), Some(&item));
        keys.unregister(*meta, 1);
    }
    assert_eq!(known(&keys), 0);
    for shard in 0..SHARDS {
        assert!(keys.table(shard).room() <= LEAST);
    }
}

#[test]
fn threads_count_the_same_keys_correctly() {
    const ROUNDS: u32 = if cfg!(miri) { 30 } else { 20_000 };
    let keys = weighed(|key| key + 1);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let key = round % 7;
                    let meta = keys.register(&key, ()).unwrap();
                    assert_eq!(meta.weight, key + 1);
                    assert_eq!(keys.key(meta.key).as_deref(), Some(&key));
                    keys.unregister(meta, 1);
                }
            });
        }
    });
    assert_eq!(known(&keys), 0);
}
