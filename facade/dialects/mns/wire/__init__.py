"""XML, query strings and errors of MNS as they travel. Called by all of `facade.dialects.mns`."""
