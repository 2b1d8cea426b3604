use super::Items;
use crate::format::{begin_value, tombstone, Front, Key, Layout, NewChunk, Ranges};
use fjall::{UserKey, UserValue};
use std::sync::Arc;

type Row = (UserKey, UserValue);

fn chunk(first: u64, count: u64) -> Row {
    let mut chunk = NewChunk::default();
    for id in first..first + count {
        let mut value = Vec::new();
        begin_value(&mut value, Front::default());
        assert!(chunk.add(Key { queue: 1, id }, Layout::Cold, None, &value));
    }
    let (first, value) = chunk.take().unwrap();
    (first.to_bytes().into(), value.into())
}

/// One may be left when its chunk is gone, and its row merged away.
#[test]
fn a_tombstone_of_another_chunk_removes_nothing() {
    let [own, other] = [12..14, 22..28].map(|ids| tombstone(1, &ids));
    let rows = [own, other].map(|(key, value)| (key.into(), value.into()));
    let rows = [chunk(10, 10)].into_iter().chain(rows).map(Ok);
    let mut gone = Ranges::default();
    gone.add(15..17);
    let items = Items::new(rows, Key { queue: 1, id: 0 }, Arc::new(gone), 0);
    let items: Vec<_> = items.map(Result::unwrap).collect();
    let ids = items.iter().map(|item| item.at.id);
    assert!(ids.eq([10, 11, 14, 17, 18, 19]));
    let (_, chunk) = &**items[0].chunk.as_ref().unwrap();
    assert_eq!((chunk.gone.count(), chunk.tombstones.len()), (4, 1));
}
