use fjall::{
    compaction::Leveled, config::FilterPolicy, Database, KeyspaceCreateOptions, PersistMode,
};
use std::sync::{mpsc::sync_channel, Arc};
use std::time::{Duration, Instant};
fn mix(mut w: u64) -> u64 {
    w = (w ^ (w >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    w = (w ^ (w >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    w ^ (w >> 31)
}
fn key(level: u64, n: u64) -> [u8; 12] {
    let mut k = [0; 12];
    k[4..].copy_from_slice(&(level << 48 | n).to_be_bytes());
    k
}
fn value(n: u64) -> Vec<u8> {
    (0..14)
        .flat_map(|p| mix(n * 14 + p + 1).to_le_bytes())
        .collect()
}
fn main() {
    let keys: u64 = std::env::var("K").unwrap().parse().unwrap();
    let memtable: u64 = std::env::var("M").map_or(64 << 20, |m| m.parse().unwrap()) / 48;
    let page: usize = std::env::var("P").map_or(48, |m| m.parse().unwrap());
    let dir = std::env::args().nth(1).unwrap();
    let db = Database::builder(&dir)
        .manual_journal_persist(true)
        .max_journaling_size(64 << 20)
        .worker_threads(4)
        .cache_size((memtable * 2).clamp(1 << 20, 16 << 20))
        .open()
        .unwrap();
    let items = db
        .keyspace("items", || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable)
                .compaction_strategy(Arc::new(
                    Leveled::default()
                        .with_l0_threshold(8)
                        .with_table_target_size(8 << 20),
                ))
                .filter_policy(FilterPolicy::disabled())
        })
        .unwrap();
    let mut n = 0u64;
    for _ in 0..1_000 {
        let mut b = db.batch();
        for _ in 0..1_000 {
            b.insert(&items, key(mix(n) % keys, n), value(n));
            n += 1;
        }
        b.commit().unwrap();
    }
    let (send, receive) = sync_channel::<(Vec<([u8; 12], Vec<u8>)>, Vec<[u8; 12]>)>(64);
    let (d, it) = (db.clone(), items.clone());
    let writer = std::thread::spawn(move || {
        let mut c = 0u64;
        while let Ok((ins, rem)) = receive.recv() {
            let mut b = d.batch();
            for (k, v) in ins {
                b.insert(&it, k, v);
            }
            for k in rem {
                b.remove(&it, k);
            }
            b.commit().unwrap();
            c += 1;
            if c % 1000 == 0 {
                let _ = d.persist(PersistMode::Buffer);
            }
        }
    });
    let mut pages: Vec<std::collections::VecDeque<[u8; 12]>> =
        vec![Default::default(); keys as usize];
    let mut next = vec![0u64; keys as usize];
    let (start, mut count, mut level) = (Instant::now(), 0u64, 0usize);
    while start.elapsed() < Duration::from_secs(4) {
        let ins = (0..32)
            .map(|_| {
                n += 1;
                (key(mix(n) % keys, n), value(n))
            })
            .collect();
        let mut rem = Vec::new();
        while rem.len() < 32 {
            level = (level + 1) % keys as usize;
            if pages[level].is_empty() {
                for row in items
                    .range(key(level as u64, next[level])..key(level as u64 + 1, 0))
                    .take(page)
                {
                    let (k, _v) = row.into_inner().unwrap();
                    let k: [u8; 12] = (*k).try_into().unwrap();
                    next[level] =
                        (u64::from_be_bytes(k[4..].try_into().unwrap()) & ((1 << 48) - 1)) + 1;
                    pages[level].push_back(k);
                }
            }
            if let Some(k) = pages[level].pop_front() {
                rem.push(k);
            }
        }
        count += 32;
        send.send((ins, rem)).unwrap();
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    drop(send);
    writer.join().unwrap();
    println!("keys {keys} page {page}: {rate:.0} items/s");
}
