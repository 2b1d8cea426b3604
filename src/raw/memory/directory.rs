//! The directory of a shard: maps segment numbers to segments.
//!
//! It is a linked list of pages of entries, in order. The producer appends pages; consumers advance
//! the front past pages that lie behind the head, and retire these. An entry is written once before
//! its positions are published and never changes afterwards, so an entry loaded for an unclaimed
//! position is valid, however stale the load.

use crate::raw::memory::reclaim::{self, Pin};
use crate::raw::memory::segment::Segment;
use crate::sync::{weak, AtomicPtr, AtomicU64, Ordering, UnsafeCell, SMALL};
use std::mem::size_of;
use std::ptr;

/// Entries in a page.
const PAGE: usize = if SMALL { 2 } else { 16 };

/// The address of a segment, and the stamp of when it was opened.
#[derive(Default)]
struct SegmentEntry {
    segment: AtomicPtr<()>,
    stamp: AtomicU64,
}

/// The entries of [`PAGE`] consecutive segment numbers.
pub(in crate::raw) struct DirectoryPage {
    /// Never changes. In a cell, so that the models see who reads it.
    first: UnsafeCell<u64>,
    entries: [SegmentEntry; PAGE],
    next: AtomicPtr<DirectoryPage>,
    /// The previous page. Only the producer reads it, and only to take back pages that it has
    /// appended since its last publication.
    previous: *mut DirectoryPage,
}

impl DirectoryPage {
    /// Appends a page for the numbers from `first` on after `last`.
    pub(in crate::raw) fn append(
        directory: &Directory,
        last: *mut DirectoryPage,
        first: u64,
    ) -> *mut DirectoryPage {
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

    /// The first number on this page.
    fn first(&self) -> u64 {
        // SAFETY: written before the page was shared, and never again.
        self.first.with(|first| unsafe { *first })
    }

    /// Takes the last page back if it begins with segment `number` and follows another one, and
    /// returns the page that is last afterwards.
    ///
    /// # Safety
    ///
    /// The caller is the producer, and no position of segment `number` was ever published.
    pub(in crate::raw) unsafe fn take_back(
        last: *mut DirectoryPage,
        number: u64,
    ) -> *mut DirectoryPage {
        // SAFETY: consumers retire a page only for a published position after it.
        let page = unsafe { &*last };
        let previous = page.previous;
        if page.first() != number || previous.is_null() {
            return last;
        }
        // SAFETY: as above: no position after the previous page is published.
        let link = unsafe { &(*previous).next };
        // ORDERING: Relaxed; the link is not followed before the next publication.
        link.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: consumers access a page only for a published position of it.
        drop(unsafe { Box::from_raw(last) });
        previous
    }

    /// Segment `number`, which is on this page.
    ///
    /// # Safety
    ///
    /// The caller is the producer, and has not published all positions of the segment.
    pub(in crate::raw) unsafe fn segment_on<T>(page: *mut Self, number: u64) -> Option<Segment<T>> {
        // SAFETY: by contract; consumers retire a page only for a published position after it.
        let entry = unsafe { &*page }.entry(number);
        // ORDERING: Relaxed; written by this producer.
        Segment::from_raw(entry.segment.load(Ordering::Relaxed))
    }

    /// Whether this page has the entry of segment `number`.
    pub(in crate::raw) fn covers(&self, number: u64) -> bool {
        (self.first()..self.end()).contains(&number)
    }

    /// Writes the entry of segment `number`, which is on this page.
    pub(in crate::raw) fn enter<T>(&self, number: u64, segment: Segment<T>, stamp: u64) {
        let entry = self.entry(number);
        // ORDERING: Relaxed, both; the Release of the shard's tail publishes them.
        entry.segment.store(segment.into_raw(), Ordering::Relaxed);
        entry.stamp.store(stamp, Ordering::Relaxed);
    }

    /// The stamp of segment `number`, which is on this page.
    fn stamp(&self, number: u64) -> u64 {
        // ORDERING: Relaxed; as in `Directory::find`.
        self.entry(number).stamp.load(Ordering::Relaxed)
    }

    #[allow(clippy::cast_possible_truncation)] // less than PAGE
    fn entry(&self, number: u64) -> &SegmentEntry {
        &self.entries[(number - self.first()) as usize]
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

    /// One more than the last number on this page.
    fn end(&self) -> u64 {
        self.first() + PAGE as u64
    }
}

/// The pages of one shard.
#[derive(Default)]
pub(in crate::raw) struct Directory {
    front: AtomicPtr<DirectoryPage>,
}

impl Directory {
    /// Finds segment `number`.
    ///
    /// The caller has loaded a head in that segment and a tail beyond that head. Returns `None` if the
    /// head has advanced in the meantime. Otherwise the segment is the right one for `number`, but
    /// alive only if one of its positions is found to be unclaimed afterwards.
    pub(in crate::raw) fn find<T>(&self, number: u64, pin: &Pin) -> Option<Segment<T>> {
        let entry = self.page(number, pin)?.entry(number);
        // ORDERING: Relaxed; written before the tail was published, which the caller has loaded with Acquire.
        Segment::from_raw(entry.segment.load(Ordering::Relaxed))
    }

    /// Finds the stamps of segment `number` and of the next one, like [`Directory::find`]. A next one that is not open at
    /// the caller's tail is taken to be opened at the next tick.
    pub(in crate::raw) fn stamps(
        &self,
        number: u64,
        next_is_open: bool,
        pin: &Pin,
    ) -> Option<[u64; 2]> {
        let mut page = self.page(number, pin)?;
        let (opened, next) = (page.stamp(number), number + 1);
        if !next_is_open {
            return Some([opened, opened + 1]);
        }
        if !page.covers(next) {
            // ORDERING: Relaxed; the caller's tail covers the successor, as in `Directory::advance`.
            let successor = page.next.load(Ordering::Relaxed);
            // SAFETY: reached under the pin, as in `Directory::page`.
            page = unsafe { successor.as_ref() }?;
        }
        Some([opened, page.stamp(next)])
    }

    /// The page of segment `number`; `None` if the front has moved past it.
    fn page<'p>(&self, number: u64, pin: &'p Pin) -> Option<&'p DirectoryPage> {
        // ORDERING: Acquire; pairs with `directory.advance`: another consumer, which has seen a later
        // tail, may have moved the front to a page that the caller's tail does not cover. Pairs with
        // `directory.append` too, if the shard was vacated and has been filled again.
        let mut at = self.front.load(weak!("directory.page", Acquire));
        loop {
            // SAFETY: reached under the pin; pages are retired, never freed immediately.
            let page: &'p DirectoryPage = unsafe { at.as_ref() }?;
            if number < page.first() {
                return None;
            }
            if page.covers(number) {
                return Some(page);
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

    /// Frees the pages, and the segments from number `first` up to `end`.
    ///
    /// # Safety
    ///
    /// The caller has exclusive access to the shard, and the segments that are alive are `first..end`.
    pub(in crate::raw) unsafe fn free<T>(&self, first: u64, end: u64) {
        // ORDERING: Relaxed, here and below: the caller has exclusive access to the shard.
        let mut at = self.front.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: pages from the front on are owned by the directory.
            let page = unsafe { Box::from_raw(at) };
            for number in page.first().max(first)..page.end().min(end) {
                let segment = page.entry(number).segment.load(Ordering::Relaxed);
                if let Some(segment) = Segment::<T>::from_raw(segment) {
                    // SAFETY: by contract alive, and in use by no other thread.
                    unsafe { segment.free() };
                }
            }
            // ORDERING: Relaxed, as above.
            at = page.next.load(Ordering::Relaxed);
        }
    }
}
