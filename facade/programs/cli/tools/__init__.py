"""Commands of the command line that are no verb of a noun: api, completion, doctor, top, bench."""
