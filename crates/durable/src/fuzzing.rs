//! The decoders, for `fuzz/fuzz_targets/format.rs`.

use crate::codec::{Codec, Postcard};
use crate::error::StoreError;
use crate::format::{
    begin_value, decode_row, encode_row, item_bytes, open, seal, split_value, DueRow, ItemRow, Key,
    LetterRow, Mark, QueueRow, StoreRow, UniqueRow, STORE_ROW,
};
use crate::log::{self, Alone, Readable, RowChange};
use crate::queue::Cause;
use serde::{de::DeserializeOwned, Serialize};
use std::fmt::Debug;
use std::io;
use std::path::Path;

/// Decodes a value as each kind of row: as it is, and with a right checksum.
pub fn rows(key: &[u8], value: &[u8]) {
    if let Some(known) = Key::from_bytes(key) {
        assert_eq!(known.to_bytes(), key);
    }
    decode(key, value);
    let mut sealed = [&[0; 8], value].concat();
    seal(key, &mut sealed);
    assert_eq!(open(key, &sealed), Some(value));
    decode(key, &sealed);
    if let Ok(row) = ItemRow::read(key, &sealed) {
        assert!(row
            .contents(&sealed)
            .all(|content| content.len() <= value.len()));
        assert!(!row.ids().is_empty() || row.ids().start == u64::MAX);
    }
}

fn decode(key: &[u8], value: &[u8]) {
    item(key, value);
    row::<Mark>(key, value);
    row::<QueueRow>(key, value);
    row::<StoreRow>(key, value);
    if let Ok(row) = UniqueRow::read(key, value) {
        assert_eq!((&row.key()[..], row.value()), (key, value.to_vec()));
    }
    if let Ok(row) = DueRow::read(key, value) {
        assert_eq!((&row.key()[..], &row.value()[..]), (key, value));
    }
    if let Some(letter) = row::<LetterRow>(key, value) {
        let reason = Cause::from_byte(letter.reason).to_byte();
        assert!(reason == letter.reason || reason == 0);
    }
}

fn item(key: &[u8], value: &[u8]) {
    let Some((front, bytes)) = open(key, value).and_then(split_value) else {
        return;
    };
    let mut again = Vec::new();
    begin_value(&mut again, front);
    again.extend_from_slice(bytes);
    assert_eq!(item_bytes(&again), Some(bytes));
    seal(key, &mut again);
    assert_eq!(again, value);
    let _: Result<Vec<(String, Option<u64>)>, _> = Postcard.decode(bytes);
}

fn row<R: Serialize + DeserializeOwned + PartialEq + Debug>(key: &[u8], value: &[u8]) -> Option<R> {
    let row = decode_row(key, value).ok()?;
    let again: R = decode_row(key, &encode_row(key, &row)).expect("what was encoded is decoded");
    assert_eq!(row, again);
    Some(row)
}

/// The key and the value of the row with the number of a group.
pub fn store_row(group: u64) -> (&'static [u8], Vec<u8>) {
    let row = StoreRow {
        group,
        ..StoreRow::default()
    };
    (STORE_ROW, encode_row(STORE_ROW, &row))
}

/// Prepares the journals of a directory for the storage engine.
///
/// # Errors
///
/// If they lack acknowledged commits.
pub fn mend(directory: &Path, acknowledged: u64) -> Result<(), StoreError> {
    log::mend(directory, acknowledged, || Ok(Alone::default())).map(drop)
}

/// The changes in the journals of a directory, as far as they can be read, behind gaps too.
///
/// # Errors
///
/// If a file cannot be read.
pub fn changes(directory: &Path) -> io::Result<Vec<RowChange>> {
    let mut changes = Vec::new();
    Readable::find(directory)?.replay(|change| changes.push(change))?;
    Ok(changes)
}
