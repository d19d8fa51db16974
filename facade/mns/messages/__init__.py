"""Messages of MNS: send, receive, peek, settle. Called by `facade.mns.actions`."""
