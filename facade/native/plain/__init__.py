"""Requests of the native API that the native front has read; SQS's are in `facade.sqs.plain`."""
