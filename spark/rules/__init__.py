"""What the log means: pure DataFrame -> DataFrame functions that batch and stream share."""
