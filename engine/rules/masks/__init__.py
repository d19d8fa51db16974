"""What is hidden of messages from those who only look at them."""
