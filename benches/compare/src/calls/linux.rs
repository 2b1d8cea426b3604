//! Functions of the C library that wait, wake or yield, which this program defines itself: the linker prefers them for the
//! standard library, `parking_lot` and all subjects. Calls within the C library, as for the end of a thread or the locks of
//! its allocator, do not pass through here.

use super::{Calls, KINDS};
use libc::{c_int, c_long, clockid_t, rusage, timespec};
use std::arch::asm;
use std::cell::Cell;
use std::mem::MaybeUninit;

pub(crate) const COUNTED: bool = true;

/// What is counted, in the order of the names.
#[derive(Clone, Copy)]
enum Kind {
    Waits,
    /// The word had changed, so the thread did not sleep.
    WaitsInVain,
    Wakes,
    /// Nobody waited.
    WakesInVain,
    Membarriers,
    Yields,
    Sleeps,
    Voluntary,
    Involuntary,
}

thread_local! {
    /// Without a destructor, so that a call at any time in the life of a thread can be counted.
    static COUNTS: Cell<Calls> = const { Cell::new(Calls([0; KINDS])) };
}

/// Up to here a negative result is the number of an error.
const LAST_ERROR: c_long = -4095;

/// What this thread has done so far.
pub(crate) fn of_this_thread() -> Calls {
    let mut usage = MaybeUninit::<rusage>::zeroed();
    // SAFETY: the system writes to `usage`, which is initialized in any case: it has numbers only.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let number = |switches| u64::try_from(switches).unwrap_or(0);
    let mut calls = COUNTS.get();
    calls.0[Kind::Voluntary as usize] = number(usage.ru_nvcsw);
    calls.0[Kind::Involuntary as usize] = number(usage.ru_nivcsw);
    calls
}

fn count(kind: Kind) {
    let mut calls = COUNTS.get();
    calls.0[kind as usize] += 1;
    COUNTS.set(calls);
}

/// Takes any number of arguments in C. Those that a caller does not pass are what their places hold, as in the C library.
#[allow(clippy::many_single_char_names)] // positions, without a meaning of their own
#[no_mangle]
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: the caller keeps the contract of this call.
    let result = unsafe { execute(number, [a, b, c, d, e, f]) };
    match number {
        libc::SYS_futex => count_futex(b, result),
        libc::SYS_membarrier => count(Kind::Membarriers),
        _ => {}
    }
    answer(result)
}

#[no_mangle]
extern "C" fn sched_yield() -> c_int {
    count(Kind::Yields);
    // SAFETY: the call has no arguments and touches no memory.
    let result = unsafe { execute(libc::SYS_sched_yield, [0; 6]) };
    c_int::from(answer(result) != 0)
}

/// Returns the number of the error instead of setting it.
#[no_mangle]
unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    count(Kind::Sleeps);
    let arguments = [
        clock.into(),
        flags.into(),
        time as c_long,
        left as c_long,
        0,
        0,
    ];
    // SAFETY: the caller keeps the contract of this call.
    let result = unsafe { execute(libc::SYS_clock_nanosleep, arguments) };
    c_int::try_from(-result).expect("a small number")
}

fn count_futex(operation: c_long, result: c_long) {
    let operation = operation & c_long::from(libc::FUTEX_CMD_MASK);
    match c_int::try_from(operation) {
        Ok(libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => {
            count(Kind::Waits);
            if result == -c_long::from(libc::EAGAIN) {
                count(Kind::WaitsInVain);
            }
        }
        Ok(libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET) => {
            count(Kind::Wakes);
            if result == 0 {
                count(Kind::WakesInVain);
            }
        }
        _ => {}
    }
}

/// The result as the C library returns it, with the error in its place.
fn answer(result: c_long) -> c_long {
    if (LAST_ERROR..0).contains(&result) {
        let error = c_int::try_from(-result).expect("a small number");
        // SAFETY: the address is that of this thread's error.
        unsafe { *libc::__errno_location() = error };
        return -1;
    }
    result
}

/// Executes a system call; a result from `LAST_ERROR` to -1 is an error.
///
/// # Safety
///
/// The arguments fit the call.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::many_single_char_names)]
unsafe fn execute(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let result;
    // SAFETY: the registers are those of the system's convention; the caller answers for their contents.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Executes a system call; a result from `LAST_ERROR` to -1 is an error.
///
/// # Safety
///
/// The arguments fit the call.
#[cfg(target_arch = "aarch64")]
#[allow(clippy::many_single_char_names)]
unsafe fn execute(number: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    let result;
    // SAFETY: the registers are those of the system's convention; the caller answers for their contents.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}
