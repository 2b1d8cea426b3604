//! The parameters of the machine. Times are in ticks, of which a nanosecond has four.

/// A nanosecond.
pub(crate) const NANO: u64 = 4;

/// An access to a line that the core has in the needed state: such accesses overlap in a real core.
pub(crate) const HIT: u64 = 1;
/// What a locked operation, or a full fence, takes besides, once the store buffer is empty.
pub(crate) const LOCKED: u64 = 4 * NANO;
/// The first access to a line, which comes from the shared cache or, by prefetching, from memory.
pub(crate) const FIRST: u64 = 15 * NANO;

/// Transfers of a line between two cores of a cluster, between clusters, and between sockets.
pub(crate) const IN_CLUSTER: u64 = 15 * NANO;
pub(crate) const ACROSS_CLUSTERS: u64 = 60 * NANO;
pub(crate) const ACROSS_SOCKETS: u64 = 100 * NANO;
/// Cores of a cluster, and of a socket.
pub(crate) const CLUSTER: usize = 8;
pub(crate) const SOCKET: usize = 32;

/// How long a core keeps a line that it has got to write, although others ask for it.
pub(crate) const KEEP: u64 = 5 * NANO;
/// Stores that a core can have in its buffer.
pub(crate) const BUFFER: usize = 56;

/// A pause of the processor.
pub(crate) const PAUSE: u64 = 20 * NANO;
/// A yield with no other thread to run.
pub(crate) const YIELD: u64 = 300 * NANO;
/// What a thread pays to fall asleep, and to wake another one; how long the other takes until it runs.
pub(crate) const SLEEP: u64 = 1000 * NANO;
pub(crate) const WAKE: u64 = 1500 * NANO;
pub(crate) const WAKING: u64 = 3000 * NANO;

/// What `membarrier` takes, and what the interrupt takes from each other core that runs.
pub(crate) const MEMBARRIER: u64 = 2000 * NANO;
pub(crate) const INTERRUPT: u64 = 1000 * NANO;

/// The pins of a thread after which it tries to advance the epoch: `crossbeam-epoch`'s.
pub(crate) const PINS: u32 = 128;

/// What a call takes besides the accesses that are marked.
pub(crate) const CALL: u64 = NANO;

/// How long a line takes from one core to another.
pub(crate) fn transfer(from: usize, to: usize) -> u64 {
    if from / CLUSTER == to / CLUSTER {
        IN_CLUSTER
    } else if from / SOCKET == to / SOCKET {
        ACROSS_CLUSTERS
    } else {
        ACROSS_SOCKETS
    }
}
