# Written by tools/stubs.py from certifit/registry.py.
from certifit.naive_bayes.bernoulli import BernoulliNB as BernoulliNB
from certifit.naive_bayes.categorical import CategoricalNB as CategoricalNB
from certifit.naive_bayes.multinomial import ComplementNB as ComplementNB
from certifit.naive_bayes.gaussian import GaussianNB as GaussianNB
from certifit.naive_bayes.multinomial import MultinomialNB as MultinomialNB
from certifit.naive_bayes.mixed import NaiveBayes as NaiveBayes
