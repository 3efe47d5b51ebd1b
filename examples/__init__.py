"""Programs to run and to read: `python -m examples.NAME`: mnist_pca, compress_digits, joint_svm, em."""
