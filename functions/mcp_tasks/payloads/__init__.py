"""What is too large for a row of DynamoDB or for Step Functions, kept in S3."""
