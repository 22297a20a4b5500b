"""Payloads: values that are too large for rows and executions, kept in S3 behind pointers."""
