"""The score of a model on new rows, with an interval that covers and the assumption that it rests on."""
