"""What is proved of gradient boosting."""
