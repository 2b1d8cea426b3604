use super::*;

fn item(item: u64) -> SlabItem<u64> {
    let delivery = DeliveryMeta {
        attempts: 1,
        since: 0,
    };
    let meta = PriorityMeta::default();
    let item = Stored { item, meta };
    SlabItem::new(Entry { item, delivery }, 0)
}

fn chunk_of(place: u32) -> u32 {
    place / Places::<u64>::LEN
}

#[test]
fn places_are_small() {
    assert_eq!(mem::size_of::<SlabEntry<u64>>(), 48);
}

#[test]
fn items_put_near_each_other_share_chunks() {
    const GROUPS: usize = 10;
    let mut slab = ItemSlab::new();
    let mut near = [NOWHERE; GROUPS];
    let places: Vec<_> = (0..400)
        .map(|number| {
            let near = &mut near[number % GROUPS];
            *near = slab.put(item(number as u64), *near);
            *near
        })
        .collect();
    for (number, place) in places.iter().enumerate().skip(GROUPS) {
        let before = places[number - GROUPS];
        let is_first = number / GROUPS % Places::<u64>::LEN as usize == 0;
        assert_eq!(chunk_of(*place) != chunk_of(before), is_first);
    }
    assert!(slab.places() < 400 + Places::<u64>::STEP);
    for (number, place) in (0..).zip(places) {
        assert_eq!(slab.take(place).map(|item| item.item), Some(number));
        assert!(slab.take(place).is_none());
    }
    assert_eq!(slab.len(), 0);
}

#[test]
fn a_chunk_is_reused_when_all_its_places_are_vacant() {
    let mut slab = ItemSlab::new();
    for round in 0..100 {
        let kept = slab.put(item(round), NOWHERE);
        let first = slab.put(item(round), kept);
        assert_eq!(chunk_of(first), chunk_of(kept));
        assert!(slab.take(kept).is_some());
        let other = slab.put(item(round), NOWHERE);
        assert_ne!(chunk_of(other), chunk_of(first));
        assert!(slab.is_in_use(first) && slab.is_in_use(kept));
        assert!(slab.take(first).is_some() && slab.take(other).is_some());
        assert!(!slab.is_in_use(kept));
    }
    assert_eq!((slab.places(), slab.len()), (Places::<u64>::STEP, 0));
}
