"""What changes when `sklearn` in an import line becomes `certifit`, and what in a given script does."""
