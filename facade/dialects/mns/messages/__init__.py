"""Messages of MNS: send, receive, peek, settle. Called by `facade.dialects.mns.actions`."""
