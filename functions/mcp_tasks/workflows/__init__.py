"""Step Functions: start and stop executions, run the steps they call, read how they ended."""
