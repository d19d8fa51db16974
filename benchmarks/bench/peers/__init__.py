"""What a user could pick instead, each behind one function that starts it, or raises Absent."""
