//! The lists of the cases, as macros that make tests of them.

/// A module with a test for each case.
#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($name:ident, $subject:expr, $($file:ident: $($case:ident)*;)*) => {
        mod $name {
            #[allow(unused_imports)] // by the expression
            use super::*;

            $(mod $file {
                #[allow(unused_imports)]
                use super::*;

                $(#[test]
                fn $case() {
                    $crate::run(|| async {
                        let subject = $subject;
                        $crate::cases::$file::$case(&subject).await;
                    });
                })*
            })*
        }
    };
}

/// Makes a module of tests: the cases for those in memory and on disk, where an item is settled at once.
#[macro_export]
macro_rules! settled_at_once_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            letters:
                an_abort_leaves_what_was_settled;
        }
    };
}

/// Makes a module of tests: the cases for all kinds of queues.
#[macro_export]
macro_rules! suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            transactions:
                a_popped_item_is_invisible_until_the_commit
                a_held_item_is_left
                an_abort_gives_items_back_in_their_order
                aborted_items_come_before_those_behind
                a_drop_is_an_abort
                several_transactions_are_open
                transactions_end_in_any_order
                a_push_is_invisible_until_the_commit
                pushes_of_a_commit_are_visible_at_once
                a_transaction_does_not_pop_what_it_pushed
                pushes_of_an_aborted_transaction_vanish
                pushes_of_a_dropped_transaction_vanish
                a_pop_and_a_push_are_one
                a_transaction_is_open_after_its_commit
                a_transaction_is_open_after_its_abort
                commits_in_a_row_are_transactions_of_their_own
                a_transaction_that_did_nothing_ends
                the_commit_says_whether_an_item_was_settled
                a_transaction_counts_what_it_holds
                an_item_may_be_changed_while_it_is_held
                a_transaction_may_be_used_by_a_task
                each_item_goes_to_one_of_many_consumers;
            order:
                items_of_a_commit_come_in_order
                commits_of_a_producer_come_in_order
                batches_keep_the_order
                aborted_items_come_before_later_pushes
                an_aborted_batch_keeps_its_order
                an_abort_after_an_abort_keeps_the_order
                items_held_by_others_are_skipped
                commits_between_keep_the_order_of_what_is_left;
            deliveries:
                deliveries_end_in_any_order
                a_dropped_delivery_is_given_back
                a_delivery_is_retried_after_a_delay
                a_failed_delivery_is_a_dead_letter
                an_acknowledgement_commits_what_was_pushed
                a_delivery_goes_to_another_task;
            attempts:
                the_first_delivery_is_the_first_attempt
                aborts_count
                drops_count
                retries_count
                a_retry_that_is_undone_counts_once
                a_follow_up_is_a_new_item
                each_item_has_its_own_count
                without_a_limit_an_item_is_delivered_again_and_again
                an_abort_of_the_last_attempt_makes_a_letter
                a_drop_of_the_last_attempt_makes_a_letter
                a_retry_of_the_last_attempt_makes_a_letter
                a_commit_of_the_last_attempt_is_a_commit
                only_items_of_the_last_attempt_die
                a_pop_that_finds_nothing_counts_nothing;
            letters:
                an_item_fails
                several_items_fail_in_one_transaction
                items_of_a_transaction_have_different_ends
                letters_are_not_delivered
                letters_are_in_the_order_of_their_deaths
                the_cause_of_the_last_abort_is_kept
                a_panic_is_a_reason
                an_abort_is_a_reason
                a_retry_of_the_last_attempt_is_a_reason
                errors_are_any_text;
            delays:
                an_item_is_retried_after_its_delay
                a_delay_of_zero_is_none
                a_retry_has_no_delay
                a_delayed_item_is_left
                a_delayed_item_holds_nothing_back
                a_waiting_pop_gets_a_delayed_item
                the_cause_of_an_abort_delays
                the_backoff_of_the_queue_delays_what_is_aborted
                the_backoff_of_the_queue_delays_what_is_retried
                the_delay_of_a_retry_goes_before_the_backoff_of_the_queue
                the_backoff_of_the_queue_goes_before_that_of_the_cause
                a_backoff_grows
                items_come_when_their_times_come
                a_delayed_batch_comes_back_as_a_whole
                a_failure_has_no_delay;
            waits:
                some_waits_are_one_attempt
                each_form_takes_what_is_ready
                each_form_of_a_batch_takes_what_is_ready
                a_wait_for_a_time_ends
                a_wait_until_a_time_ends
                a_batch_waits_for_a_time
                a_push_wakes
                a_staged_push_wakes_nobody_before_its_commit
                a_commit_of_a_pop_and_a_push_wakes
                an_abort_wakes
                a_drop_wakes
                a_retry_wakes
                a_push_wakes_a_batch
                an_abort_wakes_several
                each_push_serves_one_of_those_that_wait
                a_transaction_that_waited_in_vain_is_open;
            batches:
                a_batch_has_at_most_so_many
                a_batch_waits_for_its_first_item_only
                a_batch_has_what_is_ready
                batches_of_two_transactions_have_no_item_in_common
                a_batch_is_committed_as_a_whole
                batches_and_single_pops_mix
                items_of_a_batch_are_settled_one_by_one
                a_batch_is_larger_than_any_buffer;
            cancelled:
                a_pop_that_is_never_polled_takes_nothing
                a_pop_that_waited_takes_nothing
                a_batch_that_waited_takes_nothing
                a_pop_that_was_woken_passes_it_on
                a_transaction_is_open_after_a_cancelled_pop
                an_abort_after_a_cancelled_pop_gives_everything_back
                a_task_that_is_aborted_gives_its_item_back
                pops_are_cancelled_while_items_come;
            tasks:
                items_are_done
                a_worker_waits_for_items
                an_error_gives_the_item_back
                a_panic_gives_the_item_back
                a_panic_before_the_future_gives_the_item_back
                pushes_of_a_run_are_committed_with_its_item
                pushes_of_a_failed_run_vanish
                a_run_retries_its_item
                a_run_retries_its_item_later
                a_run_fails_its_item
                letters_keep_the_errors_of_runs
                hooks_learn_of_failures
                a_hook_gets_the_payload_of_a_panic
                a_hook_sees_the_item_back_in_the_queue
                failed_items_are_delayed_by_the_pool
                batches_are_runs
                a_failed_batch_comes_back_as_a_whole
                a_run_that_takes_too_long_is_cancelled
                a_worker_lingers_until_its_batch_is_full
                a_stopped_worker_does_not_linger
                a_paused_worker_takes_nothing
                one_of_two_workers_is_paused
                a_stop_ends_runs_and_leaves_what_is_ready
                a_finish_does_what_is_left
                a_finish_that_is_over_says_what_is_left
                a_finish_does_follow_ups
                a_shutdown_reports_runs_that_do_not_end
                a_dropped_pool_gives_its_items_back
                a_future_stops_the_pool
                workers_have_names_and_states
                a_run_that_keeps_its_item_has_failed
                any_executor_runs_workers
                two_pools_share_a_queue;
        }
    };
}

/// Makes a module of tests: the cases for those that settle an item by the end of its transaction, and not if that is dropped.
#[macro_export]
macro_rules! settled_late_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            settled_late:
                a_letter_is_made_by_the_commit
                a_commit_of_a_retry_wakes
                an_abort_undoes_what_was_settled
                a_drop_undoes_a_retry;
        }
    };
}

/// Makes a module of tests: the cases for those in which the order of all producers is that of their commits.
#[macro_export]
macro_rules! strict_order_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            strict_order:
                commits_of_all_producers_come_in_order
                items_are_in_the_order_of_commits_not_of_pushes;
        }
    };
}

/// Makes a module of tests: the cases for those that can be closed.
#[macro_export]
macro_rules! closing_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            closing:
                a_queue_is_closed
                it_may_be_closed_twice
                it_accepts_nothing_more
                its_items_are_delivered_and_then_none
                it_accepts_follow_ups
                the_close_wakes_all_who_wait
                a_waiter_learns_of_the_last_commit
                a_waiter_gets_items_aborted_after_the_close
                a_waiter_gets_follow_ups
                a_waiter_learns_of_the_last_letter
                delayed_items_are_waited_for
                retries_are_accepted
                a_refused_push_leaves_the_transaction_open
                a_pool_ends_when_nothing_is_left
                a_pool_runs_follow_ups
                a_pool_that_begins_after_the_end_ends
                pushes_before_the_close_are_kept;
        }
    };
}

/// Makes a module of tests: the cases for those that can have a capacity.
#[macro_export]
macro_rules! bounded_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            bounded:
                a_full_queue_refuses
                staged_pushes_take_places
                a_held_item_keeps_its_place
                an_aborted_item_keeps_its_place
                a_retried_item_keeps_its_place
                a_letter_frees_its_place
                a_follow_up_takes_the_place_of_its_item
                a_refused_push_leaves_the_others
                a_push_waits_for_a_commit
                a_push_waits_for_the_abort_of_another
                a_push_that_was_cancelled_takes_no_place
                the_close_wakes_a_push_that_waits;
        }
    };
}

/// Makes a module of tests: the cases for queues that lease their items.
#[macro_export]
macro_rules! leased_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            leased:
                an_expired_item_is_delivered_again
                a_commit_after_the_deadline_fails
                a_commit_fails_though_nobody_has_taken_the_item
                pushes_of_a_late_transaction_vanish
                other_items_of_a_late_transaction_come_back
                a_late_transaction_is_open_after_its_abort
                a_commit_in_time_succeeds
                an_expired_last_attempt_makes_a_letter
                a_waiting_pop_gets_an_expired_item
                an_expired_item_comes_before_those_behind
                a_transaction_without_items_is_never_late;
        }
    };
}

/// Makes a module of tests: the cases for queues whose worker pools may be threads: a [`Threaded`](crate::Threaded) subject.
#[macro_export]
macro_rules! threads_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            threads:
                items_are_done
                a_worker_waits_for_items
                errors_and_panics_give_the_item_back
                hooks_learn_of_failures
                a_run_settles_its_item
                batches_are_runs
                a_worker_lingers_until_its_batch_is_full
                a_paused_worker_takes_nothing
                a_stop_leaves_what_is_ready
                a_shutdown_names_the_stuck_workers
                a_finish_does_follow_ups
                a_finish_that_is_over_says_what_is_left
                letters_keep_the_errors_of_runs
                a_dropped_pool_ends_its_runs;
        }
    };
}

/// Makes a module of tests: the cases for queues whose items may have a time to live.
#[macro_export]
macro_rules! ttl_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            ttl:
                an_item_is_delivered_in_its_time
                an_item_is_not_delivered_after_its_time
                the_next_item_is_delivered
                a_batch_has_only_items_in_their_time
                a_pop_waits_for_an_item_in_its_time
                a_held_item_is_committed_after_its_time
                an_aborted_item_ends_after_its_time
                a_dropped_item_ends_after_its_time
                a_retried_item_ends_after_its_time
                a_delayed_item_ends_when_it_is_due
                dropped_items_make_no_letters
                an_item_becomes_a_letter_after_its_time
                a_letter_counts_the_deliveries_in_time;
        }
    };
}

/// Makes a module of tests: the cases for queues whose failed items may go to the tail.
#[macro_export]
macro_rules! tail_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            tail:
                an_aborted_item_goes_behind_the_others
                a_dropped_item_goes_behind_the_others
                a_retried_item_goes_behind_the_others
                an_aborted_batch_keeps_its_order_at_the_tail
                an_item_at_the_tail_has_its_attempts;
        }
    };
}

/// Makes a module of tests: the cases for queues whose items can be removed where they are: a [`Removing`](crate::Removing)
/// subject.
#[macro_export]
macro_rules! removed_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            removed:
                some_items_are_removed
                the_others_keep_their_order
                many_items_are_removed
                delayed_items_are_removed
                a_kept_delayed_item_is_delivered_when_it_is_due
                held_items_stay
                staged_items_stay
                letters_stay
                an_aborted_item_can_be_removed
                nothing_is_left_of_an_empty_queue
                a_queue_is_used_after_it_was_cleared;
        }
    };
}

/// Makes a module of tests: the cases for [`Superseding`](crate::Superseding) subjects.
#[macro_export]
macro_rules! duplicates_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            duplicates:
                a_key_stays_taken_for_a_time
                a_ready_item_is_replaced
                a_delayed_item_is_replaced
                a_held_item_is_not_replaced
                an_item_follows_one_that_is_committed
                an_item_follows_one_that_failed
                an_item_does_not_follow_one_that_comes_back;
        }
    };
}

/// Makes a module of tests: the cases for queues that can keep the last error of each item.
#[macro_export]
macro_rules! errors_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            errors:
                an_item_has_the_error_of_its_last_abort
                all_items_of_an_abort_have_its_error
                an_item_keeps_its_error_when_nothing_is_said
                a_delayed_item_keeps_its_error
                a_new_item_has_no_error
                a_delivery_says_the_last_error
                a_run_sees_the_errors_and_panics_of_those_before;
        }
    };
}

/// Makes a module of tests: the cases for [`Removing`](crate::Removing) subjects that can be closed at once.
#[macro_export]
macro_rules! closed_now_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            closed_now:
                a_queue_is_closed_now
                ready_items_are_delivered
                a_pop_does_not_wait_for_delayed_items
                what_was_retried_later_is_removed_by_another_call;
        }
    };
}

/// Makes a module of tests: the cases for queues whose items may be unique by key.
#[macro_export]
macro_rules! unique_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            unique:
                a_queued_item_has_its_key
                a_held_item_has_its_key
                an_aborted_item_has_its_key
                a_delayed_item_has_its_key
                a_committed_item_frees_its_key
                a_letter_frees_its_key
                items_of_a_transaction_have_different_keys
                an_undone_push_frees_its_key
                a_refused_duplicate_leaves_the_others;
        }
    };
}

/// Makes a module of tests: the cases for those in memory and on disk, where a staged item has its key.
#[macro_export]
macro_rules! unique_at_once_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            unique_at_once:
                a_staged_item_has_its_key
                a_push_does_not_wait_for_a_queued_duplicate
                a_push_waits_for_the_abort_of_a_staged_duplicate
                a_push_waits_in_vain_for_the_commit_of_a_staged_duplicate
                a_follow_up_with_the_key_of_its_item_is_refused;
        }
    };
}

/// Makes a module of tests: the cases for queues whose items may have weights.
#[macro_export]
macro_rules! weighed_suite {
    ($name:ident, $subject:expr) => {
        $crate::tests! { $name, $subject,
            weighed:
                the_capacity_is_one_of_weights
                an_item_that_is_too_heavy_is_refused_at_once
                held_and_delayed_items_keep_their_weights
                a_letter_has_no_weight
                a_transaction_needs_what_it_holds_or_has_staged
                a_heavy_push_waits_for_room
                an_undone_push_has_no_weight;
        }
    };
}
