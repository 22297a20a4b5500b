"""Step Functions: start and stop executions, run their steps, ask their clients, write their ends,
and reconcile tasks with them.
"""
