"""AWS as the library meets it: clients, error codes, DynamoDB's notation, Lambda's Runtime API."""
