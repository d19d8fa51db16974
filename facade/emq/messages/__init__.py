"""Messages of EMQ: send, receive, settle, peek. Called by `facade.emq.actions`."""
