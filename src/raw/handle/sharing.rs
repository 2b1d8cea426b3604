//! A value that is `Send` and `Sync` by a proof from where it was configured.
//!
//! The source of an order contains items and keys, and may be shared between threads if these may. A bound that says
//! so, on the order, would refuse items that contain a queue of their own kind: such an item is `Send` if the queue is,
//! which is a queue at all only if the item is `Send`. So the bound is where a queue of the order is configured, and the
//! queue is made with the proof.

use std::marker::PhantomData;
use std::ops::Deref;

/// Proof that `S` is `Send` and `Sync`.
pub(crate) struct Shareable<S>(PhantomData<fn(S) -> S>);

impl<S> Shareable<S> {
    pub(crate) const fn proved() -> Self
    where
        S: Send + Sync,
    {
        Self(PhantomData)
    }
}

impl<S> Clone for Shareable<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Shareable<S> {}

/// A value with the proof that it may be shared.
pub(crate) struct ByProof<S> {
    value: S,
    /// Makes `S` invariant, as the proof is: it holds for this very type.
    _proof: Shareable<S>,
}

// SAFETY: `S` is `Send`, of which the field is the proof.
unsafe impl<S> Send for ByProof<S> {}
// SAFETY: `S` is `Sync`, of which the field is the proof.
unsafe impl<S> Sync for ByProof<S> {}

impl<S> ByProof<S> {
    pub(crate) fn new(value: S, proof: Shareable<S>) -> Self {
        Self {
            value,
            _proof: proof,
        }
    }
}

impl<S> Deref for ByProof<S> {
    type Target = S;

    #[inline(always)] // each pop of an order
    fn deref(&self) -> &S {
        &self.value
    }
}
