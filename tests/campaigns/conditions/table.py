"""Every condition of every conditional write, and the test that notices its removal.

A condition is one clause of a write's ConditionExpression, as the request carries it, and the
method that makes the write. `make mutations` removes one at a time and runs its test, which has to
fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Condition:
    """One clause of one method's write."""

    method: str
    """`module.method`, of mcp_tasks.tasks, .sessions, .durable or .notifications."""
    clause: str
    race: str
    test: str
    """The id of a test in tests/unit."""

    @property
    def name(self) -> str:
        """How `make mutations` calls it."""
        return f"{self.method}: {self.clause}"


def clauses(expression: str) -> Iterator[str]:
    """The clauses of an expression: what AND combines, outside of brackets."""
    depth, clause = 0, ""
    for part in re.split(r"(\(|\)| AND )", expression):
        if part == " AND " and depth == 0:
            yield clause
            clause = ""
            continue
        depth += {"(": 1, ")": -1}.get(part, 0)
        clause += part
    yield clause


WRITERS: Final = {
    "idempotency": {"claim", "release"},
    "live_mailboxes": {"add_mailbox_request"},
    "mailbox_quota": {"_update"},
    "quota_item": {"add_entry_request"},
    "quotas": {"_remove_ended", "_remove"},
    "conditional_update": {"update_request"},
    "reconcile_index": {"claim", "postpone", "remove", "_update"},
    "session_table": {"_update", "_add", "_remove"},
    "call_table": {
        *("open", "answer", "claim", "ask_again", "finish", "cancel", "_end", "_update"),
    },
    "task_table": {"create", "discard"},
    "journal_table": {"write"},
    "row_updates": {
        *("report", "store_tool_error", "ask", "answer", "close_ask", "mark_delivered", "_end"),
        *("set_undo", "start_successor", "undone", "request_cancel"),
    },
    "subtask_updates": {"add", "begin", "parent_told"},
    "subtask_rows": {"add"},
}
"""Functions that make a conditional write, or say what one writes, by their module."""

CONDITIONS: Final = (
    Condition(
        "task_table.start_successor",
        "attribute_not_exists(cancelRequested)",
        "a cancel was requested; the successor would run on when its task's execution is stopped",
        "workflows/test_successor.py::test_a_task_whose_cancel_is_requested_gets_no_successor",
    ),
    Condition(
        "subtask_rows.add",
        "#status IN (:working, :input_required)",
        "the task ends while its subtasks are written; nobody would end them",
        "tasks/test_subtask_rows.py::test_a_task_that_has_ended_gets_no_subtask[complete]",
    ),
    Condition(
        "subtask_rows.add",
        "expiresAtMs > :now",
        "the task expired",
        "tasks/test_subtask_rows.py::test_an_expired_task_gets_no_subtask",
    ),
    Condition(
        "subtask_rows.add",
        "attribute_not_exists(cancelRequested)",
        "its subtasks are being ended; there would be no end of it",
        "tasks/test_subtask_rows.py::test_a_task_whose_cancel_is_requested_gets_no_subtask",
    ),
    Condition(
        "subtask_rows.add",
        "attribute_not_exists(childTaskIds)",
        "another function has written the first subtasks",
        "tasks/test_subtask_rows.py::test_no_subtask_is_written_without_its_parent_naming_it",
    ),
    Condition(
        "subtask_rows.add",
        "size(childTaskIds) = :subtasks",
        "another function has written more subtasks",
        "tasks/test_subtask_rows.py::test_subtasks_that_were_added_meanwhile_stay",
    ),
    Condition(
        "subtask_rows.add",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_subtask_rows.py::test_times_do_not_go_back_when_clocks_differ",
    ),
    Condition(
        "subtask_rows.add",
        "attribute_not_exists(taskId)",
        "another function writes the same subtasks, and one of them runs already",
        "tasks/test_subtask_rows.py::test_subtasks_that_two_functions_write_are_written_once",
    ),
    Condition(
        "subtask_rows.begin",
        "#status IN (:working, :input_required)",
        "the subtask is cancelled before its turn; whoever ended it knows no token",
        "tasks/test_subtask_rows.py::test_a_subtask_that_was_cancelled_before_its_turn_does_not_begin",
    ),
    Condition(
        "subtask_rows.begin",
        "expiresAtMs > :now",
        "the subtask expired",
        "tasks/test_subtask_rows.py::test_an_expired_subtask_does_not_begin",
    ),
    Condition(
        "subtask_rows.parent_told",
        "#status IN (:completed, :failed, :cancelled)",
        "the row is gone, or the subtask runs: its end would never be told",
        "tasks/test_subtask_rows.py::test_a_subtask_that_runs_tells_nobody",
    ),
    Condition(
        "task_table.request_cancel",
        "#status IN (:working, :input_required)",
        "an end came first; a terminal task never changes",
        "tasks/test_subtask_rows.py::test_no_cancel_is_requested_of_a_task_that_has_ended[complete]",
    ),
    Condition(
        "task_table.request_cancel",
        "expiresAtMs > :now",
        "the task expired",
        "tasks/test_subtask_rows.py::test_no_cancel_is_requested_of_an_expired_task",
    ),
    Condition(
        "task_table.request_cancel",
        "principal = :principal",
        "another principal's task does not exist",
        "tasks/test_subtask_rows.py::test_a_cancel_is_requested_by_the_tasks_principal_only",
    ),
    Condition(
        "task_table.complete",
        "attribute_not_exists(childTaskIds)",
        "the task has its first subtask since it was read; it would run on alone",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_its_first_subtask_since_it_was_read[complete]",
    ),
    Condition(
        "task_table.complete",
        "size(childTaskIds) = :subtasks",
        "the task has one more subtask since its subtasks were seen to have ended",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_more_subtasks_since_it_was_read[complete]",
    ),
    Condition(
        "task_table.fail",
        "attribute_not_exists(childTaskIds)",
        "the task has its first subtask since it was read; it would run on alone",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_its_first_subtask_since_it_was_read[fail]",
    ),
    Condition(
        "task_table.fail",
        "size(childTaskIds) = :subtasks",
        "the task has one more subtask since its subtasks were seen to have ended",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_more_subtasks_since_it_was_read[fail]",
    ),
    Condition(
        "task_table.cancel",
        "attribute_not_exists(childTaskIds)",
        "the task has its first subtask since it was read; it would run on alone",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_its_first_subtask_since_it_was_read[cancel]",
    ),
    Condition(
        "task_table.cancel",
        "size(childTaskIds) = :subtasks",
        "the task has one more subtask since its subtasks were seen to have ended",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_more_subtasks_since_it_was_read[cancel]",
    ),
    Condition(
        "task_table.expire",
        "attribute_not_exists(childTaskIds)",
        "the task has its first subtask since it was read; it would run on alone",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_its_first_subtask_since_it_was_read[expire]",
    ),
    Condition(
        "task_table.expire",
        "size(childTaskIds) = :subtasks",
        "the task has one more subtask since its subtasks were seen to have ended",
        "tasks/test_subtask_rows.py::test_a_task_does_not_end_when_it_has_more_subtasks_since_it_was_read[expire]",
    ),
    Condition(
        "task_table.set_undo",
        "#status IN (:working, :input_required)",
        "the task is cancelled while a step begins that something undoes; the step must not begin",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-set_undo]",
    ),
    Condition(
        "task_table.set_undo",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[set_undo]",
    ),
    Condition(
        "task_table.start_successor",
        "#status IN (:working, :input_required)",
        "an end came first; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-start_successor]",
    ),
    Condition(
        "task_table.start_successor",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[start_successor]",
    ),
    Condition(
        "task_table.start_successor",
        "attribute_not_exists(#execution)",
        "the first execution's end is told twice; a third execution would run beside the second",
        "workflows/test_successor.py::test_two_functions_that_hear_of_one_end_count_one_successor",
    ),
    Condition(
        "task_table.start_successor",
        "#execution = :execution",
        "a later execution's end is told twice",
        "workflows/test_successor.py::test_two_functions_that_hear_of_one_end_count_one_successor",
    ),
    Condition(
        "task_table.undone",
        "#status IN (:cancelled, :failed)",
        "a task that runs, and may do more, is not taken for undone",
        "workflows/test_undo_execution.py::test_only_an_ended_task_is_undone",
    ),
    Condition(
        "task_table.undone",
        "#undo = :undo",
        "the end of the execution that undid it is told twice",
        "workflows/test_undo_execution.py::test_an_undoing_is_noted_once",
    ),
    Condition(
        "task_table.fail",
        "(attribute_not_exists(#undo) OR #undo = :noUndo)",
        "a step that is to be undone begins after the row was read",
        "workflows/test_undo_execution.py::test_a_step_that_begins_while_the_task_fails_is_undone",
    ),
    Condition(
        "journal_table.write",
        "attribute_not_exists(pk)",
        "two runs come to one operation; both go on with the first result",
        "durable/test_journal_table.py::test_the_first_result_of_a_step_stands",
    ),
    Condition(
        "journal_table.write",
        "#state = :state",
        "another run has ended the operation since it was read",
        "durable/test_journal_table.py::test_of_two_runs_of_one_attempt_the_first_result_stands",
    ),
    Condition(
        "journal_table.write",
        "#attempts = :attempts",
        "another run has made the next attempt since it was read",
        "durable/test_journal_table.py::test_of_two_runs_that_saw_the_same_record_one_goes_on",
    ),
    Condition(
        "task_table.discard",
        "#status IN (:completed, :failed, :cancelled)",
        "the task expired, and its client has begun another one with the same id",
        "tasks/test_task_table.py::test_a_task_is_deleted_when_it_has_ended",
    ),
    Condition(
        "session_table._set",
        "attribute_not_exists(#ended)",
        "the client ends its session while another of its requests writes",
        "sessions/test_session_table.py::test_nothing_is_written_to_a_session_that_has_ended",
    ),
    Condition(
        "session_table.add_task",
        "attribute_not_exists(#ended)",
        "the client ends its session while a call of it becomes a task",
        "sessions/test_session_table.py::test_nothing_is_written_to_a_session_that_has_ended",
    ),
    Condition(
        "session_table.add_task",
        "attribute_not_exists(#name)",
        "a call that is sent again would count its task twice",
        "sessions/test_session_table.py::test_a_task_counts_once",
    ),
    Condition(
        "session_table.add_task",
        "(attribute_not_exists(#count) OR #count < :most)",
        "several calls become tasks at once, the last of which is one too many",
        "sessions/test_session_table.py::test_a_session_remembers_so_many_tasks",
    ),
    Condition(
        "session_table.remove_task",
        "attribute_exists(#name)",
        "two connections see a task's end, which counts once",
        "sessions/test_session_table.py::test_a_task_is_removed_once",
    ),
    Condition(
        "session_table.mark_listening",
        "attribute_not_exists(#ended)",
        "the client ends its session while it listens",
        "sessions/test_session_table.py::test_nothing_is_written_to_a_session_that_has_ended",
    ),
    Condition(
        "session_table.subscribe",
        "attribute_not_exists(#ended)",
        "the client ends its session while another of its requests subscribes",
        "sessions/test_session_table.py::test_nothing_is_written_to_a_session_that_has_ended",
    ),
    Condition(
        "session_table.subscribe",
        "attribute_not_exists(#name)",
        "the client subscribes to one resource twice, which counts once",
        "sessions/test_session_table.py::test_a_resource_counts_once",
    ),
    Condition(
        "session_table.subscribe",
        "(attribute_not_exists(#count) OR #count < :most)",
        "the client subscribes to several resources at once, the last of which is one too many",
        "sessions/test_session_table.py::test_a_session_is_subscribed_to_so_many_resources",
    ),
    Condition(
        "session_table.unsubscribe",
        "attribute_exists(#name)",
        "the client unsubscribes from one resource twice, which counts once",
        "sessions/test_session_table.py::test_a_resource_is_unsubscribed_from_once",
    ),
    Condition(
        "call_table.open",
        "attribute_not_exists(#pk) OR #expiresAt < :now",
        "two requests with one id; the second one's questions would replace the first one's",
        "sessions/test_call_table.py::test_a_request_id_stands_for_one_call",
    ),
    Condition(
        "call_table.answer",
        "attribute_exists(#questions.#key)",
        "the call has ended meanwhile",
        "sessions/test_call_table.py::test_an_answer_to_a_call_that_has_ended_is_not_kept",
    ),
    Condition(
        "call_table.answer",
        "attribute_not_exists(#answers.#key)",
        "a question is answered twice, and the call may have run with the first answer",
        "sessions/test_call_table.py::test_the_first_answer_counts",
    ),
    Condition(
        "call_table.answer",
        "#round = :round",
        "the call has asked again meanwhile",
        "sessions/test_call_table.py::test_an_answer_is_of_its_round",
    ),
    Condition(
        "call_table.claim",
        "#round = :round",
        "another connection has run the call, which has asked again",
        "sessions/test_call_table.py::test_a_call_that_has_asked_again_is_not_run_without_new_answers",
    ),
    Condition(
        "call_table.claim",
        "attribute_not_exists(#response)",
        "another connection has run the call, which has ended",
        "sessions/test_call_table.py::test_a_call_that_has_ended_is_not_claimed",
    ),
    Condition(
        "call_table.claim",
        "(attribute_not_exists(#until) OR #until < :now)",
        "two connections of one stream see the last answer at the same time",
        "sessions/test_call_table.py::test_one_instance_runs_a_call",
    ),
    Condition(
        "call_table.ask_again",
        "#claim = :claim",
        "the claim has expired, and another instance runs the call",
        "sessions/test_call_table.py::test_who_has_lost_a_claim_neither_asks_nor_ends",
    ),
    Condition(
        "call_table._end",
        "#claim = :claim",
        "the claim has expired, and another instance runs the call",
        "sessions/test_call_table.py::test_who_has_lost_a_claim_neither_asks_nor_ends",
    ),
    Condition(
        "call_table._end",
        "attribute_exists(#params)",
        "a call is cancelled while it ends",
        "sessions/test_call_table.py::test_a_cancelled_call_keeps_its_first_response",
    ),
    Condition(
        "idempotency.claim",
        "attribute_not_exists(pk) OR expiresAtMs <= :expired",
        "two calls with one key at once; one of them makes the task",
        "tasks/test_idempotency.py::test_a_key_stands_for_its_first_task",
    ),
    Condition(
        "idempotency.release",
        "taskId = :task",
        "the key expired, and stands for a newer task",
        "tasks/test_idempotency.py::test_a_key_that_stands_for_a_newer_task_is_kept",
    ),
    Condition(
        "quotas.release_task",
        "attribute_exists(#open)",
        "the item expired since it was read; none that holds nothing is made",
        "tasks/test_quotas.py::test_the_entry_of_a_task_that_was_not_written_is_removed",
    ),
    Condition(
        "quotas.acquire_call",
        "attribute_exists(#open)",
        "the item expired since it was read; none that holds nothing is made",
        "tasks/test_quotas.py::test_no_more_calls_than_the_quota",
    ),
    Condition(
        "quotas.acquire_call",
        "attribute_not_exists(#open)",
        "two calls are a caller's first; the second must not overwrite the first's entry",
        "tasks/test_quotas.py::test_two_calls_are_a_callers_first_at_once",
    ),
    Condition(
        "quotas.acquire_call",
        "size(#open) < :max",
        "two add the last entry at once",
        "tasks/test_quotas.py::test_no_more_calls_than_the_quota",
    ),
    Condition(
        "quotas.release_call",
        "attribute_exists(#open)",
        "the item expired since it was read; none that holds nothing is made",
        "tasks/test_quotas.py::test_a_call_without_an_entry_removes_none",
    ),
    Condition(
        "mailbox_quota.acquire",
        "attribute_not_exists(#live)",
        "two subscriptions are a caller's first; the second must not overwrite the first's mailbox",
        "notifications/test_mailbox_quota.py::test_two_are_a_callers_first_at_once",
    ),
    Condition(
        "mailbox_quota.acquire",
        "attribute_exists(#live)",
        "the item expired since it was read",
        "notifications/test_mailbox_quota.py::test_an_item_that_expires_before_a_subscription_begins",
    ),
    Condition(
        "mailbox_quota.acquire",
        "attribute_not_exists(#live.#number)",
        "two take the last number at once",
        "notifications/test_mailbox_quota.py::test_two_take_the_last_number_at_once",
    ),
    Condition(
        "mailbox_quota.acquire",
        "#live.#number.#token = :seen",
        "two take the same released mailbox at once, or another replaces it",
        "notifications/test_mailbox_quota.py::test_a_mailbox_is_replaced_while_its_client_comes_back",
    ),
    Condition(
        "mailbox_quota.acquire",
        "#tat <= :latest",
        "two use up the last of a minute at once",
        "notifications/test_mailbox_quota.py::test_two_take_the_last_of_a_minute_at_once",
    ),
    Condition(
        "mailbox_quota.acquire",
        "(attribute_not_exists(#tat) OR #tat <= :now)",
        "another went ahead of the clock at the same moment",
        "notifications/test_mailbox_quota.py::test_two_go_ahead_of_the_clock_at_once",
    ),
    Condition(
        "mailbox_quota.release",
        "#live.#number.#token = :token",
        "the mailbox was replaced; its number is another's",
        "notifications/test_mailbox_quota.py::test_what_was_replaced_stays_replaced",
    ),
    Condition(
        "mailbox_quota.close",
        "#live.#number.#token = :token",
        "the mailbox was replaced; its number is another's",
        "notifications/test_mailbox_quota.py::test_what_was_replaced_stays_replaced",
    ),
    Condition(
        "mailbox_quota.put_back",
        "#live.#number.#token = :token",
        "the mailbox was replaced; its number is another's",
        "notifications/test_mailbox_quota.py::test_what_failed_after_its_time_is_not_put_back",
    ),
    Condition(
        "quotas.acquire_task",
        "#tat <= :latest",
        "two use up the last of a minute at once",
        "tasks/test_quotas.py::test_two_take_the_last_of_a_minute_at_once",
    ),
    Condition(
        "quotas.acquire_task",
        "#tat > :now",
        "the clock has caught up: the rate limit begins anew",
        "tasks/test_quotas.py::test_a_caller_who_was_ahead_is_new_again",
    ),
    Condition(
        "quotas.acquire_task",
        "(attribute_not_exists(#tat) OR #tat <= :now)",
        "another went ahead of the clock at the same moment",
        "tasks/test_quotas.py::test_a_callers_first_entry_without_a_limit_of_tasks",
    ),
    Condition(
        "quotas.acquire_task",
        "attribute_exists(#open)",
        "the item expired since it was read; none that holds nothing is made",
        "tasks/test_quotas.py::test_no_more_tasks_than_the_quota",
    ),
    Condition(
        "quotas.acquire_task",
        "attribute_not_exists(#open)",
        "two calls are a caller's first; the second must not overwrite the first's entry",
        "tasks/test_quotas.py::test_two_add_a_callers_first_entry_at_once",
    ),
    Condition(
        "quotas.acquire_task",
        "size(#open) < :max",
        "two add the last entry at once",
        "tasks/test_quotas.py::test_no_more_tasks_than_the_quota",
    ),
    Condition(
        "task_table.answer",
        "#status IN (:input_required)",
        "the task ended, or nothing is asked any more",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-answer]",
    ),
    Condition(
        "task_table.answer",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[answer]",
    ),
    Condition(
        "task_table.answer",
        "inputRevision = :seen",
        "another answer, question or close came between read and write",
        "tasks/test_task_table.py::test_two_clients_answer_different_keys_at_once",
    ),
    Condition(
        "task_table.answer",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[answer]",
    ),
    Condition(
        "task_table.answer",
        "principal = :principal",
        "none: a task of somebody else does not exist, for writes as for reads",
        "tasks/test_task_table.py::test_only_its_principal_answers_a_task",
    ),
    Condition(
        "task_table.ask",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-ask]",
    ),
    Condition(
        "task_table.ask",
        "attribute_exists(accepts.#form)",
        "the client cannot be asked for this",
        "tasks/test_task_table.py::test_a_client_is_asked_for_nothing_else[False-form]",
    ),
    Condition(
        "task_table.ask",
        "attribute_exists(accepts.#roots)",
        "the client cannot be asked for this",
        "tasks/test_task_table.py::test_a_client_is_asked_for_nothing_else[False-roots]",
    ),
    Condition(
        "task_table.ask",
        "attribute_exists(accepts.#sampling)",
        "the client cannot be asked for this",
        "tasks/test_task_table.py::test_a_client_is_asked_for_nothing_else[False-sampling]",
    ),
    Condition(
        "task_table.ask",
        "attribute_exists(accepts.#url)",
        "the client cannot be asked for this",
        "tasks/test_task_table.py::test_a_client_is_asked_for_nothing_else[False-url]",
    ),
    Condition(
        "task_table.ask",
        "attribute_not_exists(asks.#ask)",
        "the ask was delivered twice, and answered in between",
        "tasks/test_task_table.py::test_an_ask_delivered_twice_keeps_its_answers",
    ),
    Condition(
        "task_table.ask",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[ask]",
    ),
    Condition(
        "task_table.ask",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[ask]",
    ),
    Condition(
        "task_table.cancel",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-cancel]",
    ),
    Condition(
        "task_table.cancel",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[cancel]",
    ),
    Condition(
        "task_table.cancel",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[cancel]",
    ),
    Condition(
        "task_table.cancel",
        "principal = :principal",
        "none: a task of somebody else does not exist, for writes as for reads",
        "tasks/test_task_table.py::test_only_its_principal_cancels_a_task",
    ),
    Condition(
        "reconcile_index.claim",
        "#reconcileAt = :seen",
        "another look at the same task; or its execution was heard to be over",
        "tasks/test_reconcile_index.py::test_one_of_two_claims_the_task[4]",
    ),
    Condition(
        "reconcile_index.claim",
        "#status IN (:working, :input_required)",
        "a task of version 3 ended meanwhile; it must not come into the index",
        "tasks/test_reconcile_index.py::test_a_claim_of_version_3_brings_back_nothing",
    ),
    Condition(
        "reconcile_index.claim",
        "attribute_not_exists(#reconcileAt)",
        "the same, for a row of version 3",
        "tasks/test_reconcile_index.py::test_one_of_two_claims_the_task[3]",
    ),
    Condition(
        "task_table.close_ask",
        "#status IN (:input_required)",
        "the task ended, or nothing is asked any more",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-close_ask]",
    ),
    Condition(
        "task_table.close_ask",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[close_ask]",
    ),
    Condition(
        "task_table.close_ask",
        "inputRevision = :seen",
        "another answer, question or close came between read and write",
        "tasks/test_task_table.py::test_an_answer_that_comes_before_the_close_stands",
    ),
    Condition(
        "task_table.close_ask",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[close_ask]",
    ),
    Condition(
        "task_table.complete",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-complete]",
    ),
    Condition(
        "task_table.complete",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[complete]",
    ),
    Condition(
        "task_table.complete",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[complete]",
    ),
    Condition(
        "task_table.create",
        "attribute_not_exists(taskId)",
        "a create repeated after a lost answer; it must not reset what runs",
        "tasks/test_task_table.py::test_a_create_that_is_repeated_resets_nothing",
    ),
    Condition(
        "task_table.mark_delivered",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-mark_delivered]",
    ),
    Condition(
        "task_table.mark_delivered",
        "attribute_exists(asks.#ask)",
        "the ask was never there: no tombstone for it",
        "tasks/test_task_table.py::test_an_ask_that_never_was_leaves_no_tombstone",
    ),
    Condition(
        "task_table.mark_delivered",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[mark_delivered]",
    ),
    Condition(
        "task_table.expire",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_an_end_that_came_before_the_expiry_stands[completed]",
    ),
    Condition(
        "task_table.expire",
        "expiresAtMs <= :now",
        "a clock that is ahead must not end a task before its time",
        "tasks/test_task_table.py::test_no_task_is_ended_before_its_time",
    ),
    Condition(
        "task_table.store_tool_error",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-store_tool_error]",
    ),
    Condition(
        "task_table.store_tool_error",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[store_tool_error]",
    ),
    Condition(
        "task_table.fail",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-fail]",
    ),
    Condition(
        "task_table.fail",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[fail]",
    ),
    Condition(
        "task_table.fail",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[fail]",
    ),
    Condition(
        "reconcile_index.postpone",
        "#reconcileAt = :seen",
        "code that reads the row has looked at it, or ended it, since it was found",
        "tasks/test_reconcile_index.py::test_a_row_that_others_could_read_is_not_put_off[ended]",
    ),
    Condition(
        "task_table.report",
        "#status IN (:working, :input_required)",
        "an end came first, or comes late or twice; a terminal task never changes",
        "tasks/test_task_table.py::test_a_terminal_task_never_changes[completed-report]",
    ),
    Condition(
        "task_table.report",
        "expiresAtMs > :now",
        "the task expired; it must not be written back to life",
        "tasks/test_task_table.py::test_nothing_is_written_to_an_expired_task[report]",
    ),
    Condition(
        "task_table.report",
        "lastUpdatedAt <= :at",
        "the writer before had a clock that is ahead; a task's times must not go back",
        "tasks/test_task_table.py::test_times_do_not_go_back_when_clocks_differ[report]",
    ),
    Condition(
        "reconcile_index.remove",
        "#status IN (:completed, :failed, :cancelled)",
        "the row was removed: the write would make one that holds nothing",
        "tasks/test_reconcile_index.py::test_only_a_task_that_is_over_is_settled",
    ),
)
