"""The table in DynamoDB."""
