"""Messages of EMQ: send, receive, settle, peek. Called by `facade.dialects.emq.actions`."""
