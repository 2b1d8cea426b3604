//! The directory of a shard: maps positions to segments.
//!
//! It is a linked list of pages of entries, in order. The producer appends pages; consumers advance
//! the front past pages that lie behind the head, and retire these. An entry is written before its positions are
//! published and never changes afterwards, so an entry loaded for an unclaimed position is valid, however stale the load.
//!
//! Segments differ in length, so an entry has the end of its segment, which begins where the one before ends. The entry of a
//! position is the first one that ends after it. A search reads no entry behind that one: those before it are as long
//! published, and those behind it may have been taken back and written again. Nor does it begin before the entry that
//! would be the position's if all segments on the page were the longest ones.

use crate::raw::memory::reclaim::{self, Pin};
use crate::raw::memory::segment::Segment;
use crate::sync::{weak, AtomicPtr, AtomicU64, Ordering, UnsafeCell, SMALL};
use std::mem::size_of;
use std::ptr;

/// Entries in a page.
const PAGE: usize = if SMALL { 2 } else { 16 };

/// The address of a segment, the position behind it, and the stamp of when it was opened.
#[derive(Default)]
struct SegmentEntry {
    segment: AtomicPtr<()>,
    end: AtomicU64,
    stamp: AtomicU64,
}

impl SegmentEntry {
    fn end(&self) -> u64 {
        // ORDERING: Relaxed; written before the tail was published, which the caller has loaded with Acquire, or by the caller.
        self.end.load(Ordering::Relaxed)
    }

    fn stamp(&self) -> u64 {
        // ORDERING: Relaxed; as above.
        self.stamp.load(Ordering::Relaxed)
    }
}

/// The entries of [`PAGE`] consecutive segments.
pub(in crate::raw) struct DirectoryPage {
    /// The first position. Never changes. In a cell, so that the models see who reads it.
    first: UnsafeCell<u64>,
    entries: [SegmentEntry; PAGE],
    next: AtomicPtr<DirectoryPage>,
    /// The previous page. Only the producer reads it, and only to take back pages that it has
    /// appended since its last publication.
    previous: *mut DirectoryPage,
}

/// The producer's place in a directory: its last page, and how many entries of that are written.
#[derive(Clone, Copy)]
pub(in crate::raw) struct DirectoryEnd {
    page: *mut DirectoryPage,
    entries: usize,
}

impl DirectoryEnd {
    /// That of a directory without a page.
    pub(in crate::raw) fn new() -> Self {
        Self {
            page: ptr::null_mut(),
            entries: PAGE,
        }
    }

    /// Adds the entry of a segment up to `end`.
    pub(in crate::raw) fn enter<T>(
        &mut self,
        directory: &Directory,
        segment: Segment<T>,
        end: u64,
        stamp: u64,
    ) {
        if self.entries == PAGE {
            self.page = DirectoryPage::append(directory, self.page, segment.first());
            self.entries = 0;
        }
        // SAFETY: the producer's last page is never retired.
        let entry = unsafe { &(*self.page).entries[self.entries] };
        // ORDERING: Relaxed, all; the Release of the shard's tail publishes them.
        entry.segment.store(segment.into_raw(), Ordering::Relaxed);
        entry.end.store(end, Ordering::Relaxed);
        entry.stamp.store(stamp, Ordering::Relaxed);
        self.entries += 1;
    }

    /// Takes the last entry back, and its page if that is its first one and follows another one. Returns the segment before, if
    /// it has an entry.
    ///
    /// # Safety
    ///
    /// No position of that entry was ever published.
    pub(in crate::raw) unsafe fn take_back<T>(&mut self) -> Option<Segment<T>> {
        self.entries -= 1;
        // SAFETY: as in `enter`.
        let previous = unsafe { (*self.page).previous };
        if self.entries == 0 && !previous.is_null() {
            // SAFETY: by contract, no position after the previous page is published: consumers retire a page, and
            // access its successor, only for such a position.
            unsafe {
                // ORDERING: Relaxed; the link is not followed before the next publication.
                (*previous).next.store(ptr::null_mut(), Ordering::Relaxed);
                drop(Box::from_raw(self.page));
            }
            (self.page, self.entries) = (previous, PAGE);
        }
        let last = self.entries.checked_sub(1)?;
        // SAFETY: as above.
        unsafe { (*self.page).segment(last) }
    }
}

impl DirectoryPage {
    /// Appends a page for the positions from `first` on after `last`.
    fn append(directory: &Directory, last: *mut DirectoryPage, first: u64) -> *mut DirectoryPage {
        let page = Box::into_raw(Box::new(DirectoryPage {
            first: UnsafeCell::new(first),
            entries: Default::default(),
            next: AtomicPtr::new(ptr::null_mut()),
            previous: last,
        }));
        if last.is_null() {
            // ORDERING: Release; pairs with `directory.page`: a consumer may have loaded the head and the tail
            // before the shard was vacated, and then finds this page, which its tail does not cover.
            let release = weak!("directory.append", Release);
            directory.front.store(page, release);
        } else {
            // SAFETY: consumers retire a page only when it has a successor.
            let link = unsafe { &(*last).next };
            // ORDERING: Relaxed; the link is followed only for published positions after it, so the Release
            // of the shard's tail publishes it.
            link.store(page, Ordering::Relaxed);
        }
        page
    }

    /// The first position on this page.
    fn first(&self) -> u64 {
        // SAFETY: written before the page was shared, and never again.
        self.first.with(|first| unsafe { *first })
    }

    /// The first position of the entry at `index`.
    fn first_of(&self, index: usize) -> u64 {
        let before = index.checked_sub(1);
        before.map_or_else(|| self.first(), |before| self.entries[before].end())
    }

    /// The index of the entry of `position`, which is not before this page; `None` if it is after it.
    #[allow(clippy::cast_possible_truncation)] // a page has fewer positions if it has this one
    fn index_of<T>(&self, position: u64) -> Option<usize> {
        let least = ((position - self.first()) / Segment::<T>::LONG as u64) as usize;
        let mut entries = self.entries.get(least..)?.iter();
        Some(least + entries.position(|entry| position < entry.end())?)
    }

    /// The segment of the entry at `index`.
    fn segment<T>(&self, index: usize) -> Option<Segment<T>> {
        // ORDERING: Relaxed; as for its end.
        let segment = self.entries[index].segment.load(Ordering::Relaxed);
        Segment::from_raw(segment, self.first_of(index))
    }

    /// Frees a page once all present pins are dropped.
    ///
    /// # Safety
    ///
    /// Neither later pins nor the producer reach the page.
    unsafe fn retire(page: *mut Self, pin: &Pin) {
        // SAFETY: by contract; made by `Box::into_raw`.
        unsafe { pin.retire(size_of::<Self>(), move || drop(Box::from_raw(page))) };
    }
}

/// Where a position lies in its segment, and between the stamps of that and of the next one.
pub(in crate::raw) struct Age {
    pub(in crate::raw) offset: u64,
    pub(in crate::raw) len: u64,
    pub(in crate::raw) stamps: [u64; 2],
}

/// The pages of one shard.
#[derive(Default)]
pub(in crate::raw) struct Directory {
    front: AtomicPtr<DirectoryPage>,
}

impl Directory {
    /// Finds the segment of `position`, and its end.
    ///
    /// The caller has loaded a head at that position and a tail beyond it. Returns `None` if the
    /// head has advanced in the meantime. Otherwise the segment is the right one for the position, but
    /// alive only if one of its positions is found to be unclaimed afterwards.
    pub(in crate::raw) fn find<T>(&self, position: u64, pin: &Pin) -> Option<(Segment<T>, u64)> {
        let (page, index) = self.locate::<T>(position, pin)?;
        Some((page.segment(index)?, page.entries[index].end()))
    }

    /// Finds where in its segment `position` is, and the stamps of the segment and of the next one, like
    /// [`Directory::find`]. One that is not open at the `tail`, which the caller has loaded, is taken to be opened at the next
    /// tick.
    pub(in crate::raw) fn age<T>(&self, position: u64, tail: u64, pin: &Pin) -> Option<Age> {
        let (page, index) = self.locate::<T>(position, pin)?;
        let entry = &page.entries[index];
        let (first, end, opened) = (page.first_of(index), entry.end(), entry.stamp());
        let next = if end >= tail {
            opened + 1
        } else if index + 1 < PAGE {
            page.entries[index + 1].stamp()
        } else {
            // ORDERING: Relaxed; the caller's tail covers the successor, as in `Directory::advance`.
            let successor = page.next.load(Ordering::Relaxed);
            // SAFETY: reached under the pin, as in `Directory::locate`.
            unsafe { successor.as_ref() }?.entries[0].stamp()
        };
        Some(Age {
            offset: position - first,
            len: end - first,
            stamps: [opened, next],
        })
    }

    /// The page and the index of the entry of `position`; `None` if the front has moved past it.
    fn locate<'p, T>(&self, position: u64, pin: &'p Pin) -> Option<(&'p DirectoryPage, usize)> {
        // ORDERING: Acquire; pairs with `directory.advance`: another consumer, which has seen a later
        // tail, may have moved the front to a page that the caller's tail does not cover. Pairs with
        // `directory.append` too, if the shard was vacated and has been filled again.
        let mut at = self.front.load(weak!("directory.page", Acquire));
        loop {
            // SAFETY: reached under the pin; pages are retired, never freed immediately.
            let page: &'p DirectoryPage = unsafe { at.as_ref() }?;
            if position < page.first() {
                return None;
            }
            if let Some(index) = page.index_of::<T>(position) {
                return Some((page, index));
            }
            at = self.advance(at, page, pin);
        }
    }

    /// Moves the front past `page`, which lies behind the head, and returns its successor.
    fn advance(
        &self,
        at: *mut DirectoryPage,
        page: &DirectoryPage,
        pin: &Pin,
    ) -> *mut DirectoryPage {
        // ORDERING: Relaxed; the caller's tail covers the successor, whether the front still points here
        // or the shard was retired since.
        let next = page.next.load(Ordering::Relaxed);
        // ORDERING: Release; pairs with `directory.page`. Relaxed on failure: another consumer has
        // advanced the front.
        let release = weak!("directory.advance", Release);
        let advanced = self
            .front
            .compare_exchange(at, next, release, Ordering::Relaxed);
        if advanced.is_ok() {
            // SAFETY: the front never returns to the page, and the producer is beyond it.
            unsafe { DirectoryPage::retire(at, pin) };
        }
        next
    }

    /// Retires all pages.
    ///
    /// # Safety
    ///
    /// The caller is the producer, which discards its last page, and the shard is empty.
    pub(in crate::raw) unsafe fn vacate(&self) {
        let pin = reclaim::pin();
        // ORDERING: Relaxed; producers wrote the pages. A thread that finds none has seen an old tail.
        let mut at = self.front.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: pages from the front on belong to the caller now: consumers retire a page only when
        // they have moved the front past it.
        while let Some(page) = unsafe { at.as_ref() } {
            let this = at;
            // ORDERING: Relaxed; written by producers.
            at = page.next.load(Ordering::Relaxed);
            // SAFETY: unreachable for later pins.
            unsafe { DirectoryPage::retire(this, &pin) };
        }
    }

    /// Frees the pages, and the segments of the positions from `head` up to `limit`.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access to the shard, and the segments that are alive are those between `head` and `limit`, which
    /// is the end of the last one.
    pub(in crate::raw) unsafe fn free<T>(&self, head: u64, limit: u64) {
        // ORDERING: Relaxed, here and below: the caller has exclusive access to the shard.
        let mut at = self.front.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: pages from the front on are owned by the directory.
            let page = unsafe { Box::from_raw(at) };
            // Behind the limit are entries that were taken back, or never written.
            let indices = (0..PAGE).take_while(|&index| page.first_of(index) < limit);
            for index in indices.filter(|&index| page.entries[index].end() > head) {
                if let Some(segment) = page.segment::<T>(index) {
                    // SAFETY: by contract alive, and in use by no other thread.
                    unsafe { segment.free() };
                }
            }
            // ORDERING: Relaxed, as above.
            at = page.next.load(Ordering::Relaxed);
        }
    }
}
