"""The executor that runs are pushed to: an AWS Lambda or any ASGI server around an author's workflows."""
