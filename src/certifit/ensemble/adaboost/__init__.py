"""AdaBoost: learners fitted one after another to rows weighted by what those before them got wrong."""
